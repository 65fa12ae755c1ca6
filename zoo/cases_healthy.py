# SPDX-License-Identifier: MIT
"""Programs with nothing wrong, most of which look as if there were. What the fields mean: cases.py."""
from cases import fine

H100 = 'gpu "NVIDIA H100 80GB HBM3"'
MB = 1 << 20

HEALTHY = [
    fine("photos-fine", "photos.py", "--gpu-ms 90"),
    fine("photos-backlog", "photos.py", "--workers 1 --batch 6 --gpu-ms 60 --log-every 200"),      # waits for data, GPU busy
    fine("photos-spin", "photos.py", "--gpu-ms 150 --spin --workers 1 --batch 4", tags=("alike",)),  # a core at 100 %
    fine("photos-in-memory", "photos.py", "--workers 0 --in-memory --gpu-ms 50", tags=("alike",)),
    fine("renders-once", "renders.py", "--pool once"),
    fine("molecules-ahead", "molecules.py", "--large 0.02 --prefetch 20", tags=("alike",)),  # large ones, and enough ready
    fine("photos-twelve-idle", "photos.py", "--workers 12 --draft --gpu-ms 80", tags=("alike",)),
    fine("photos-busy-workers", "photos.py", "--workers 2 --batch 24 --gpu-ms 85"),                # much CPU, no stall
    fine("photos-rare-save", "photos.py", "--save 150 --save-mb 8 --gpu-ms 60"),
    fine("photos-quiet-quota", "photos.py", "--workers 1 --batch 4 --gpu-ms 60", injure={"cpu": 1.8}, tags=("alike",)),
    fine("photos-small-neighbour", "photos.py", "--workers 1 --batch 4 --gpu-ms 90", injure={"burn": "1 0.3"}, tags=("alike",)),
    fine("photos-cold-start", "photos.py", "--gpu-ms 80", data="photos", injure={"forget": True}, tags=("alike",)),
    fine("volumes-fine", "volumes.py", "--gpu-ms 60"),
    fine("volumes-cold-start", "volumes.py", "--gpu-ms 40", data="volumes", tags=("alike",),
         injure={"forget": True, "read_bps": 25 * MB}),                                             # the first epoch only
    fine("volumes-packed-hidden", "volumes.py", "--packed --batch-size 1 --gpu-ms 60", tags=("alike",)),
    fine("volumes-uneven-hidden", "volumes.py", "--num-workers 2 --batch-size 1 --smooth 50 --spread 0.8 --gpu-ms 120", tags=("alike",)),
    fine("sentences-ready", "sentences.py", "--pretokenized --gpu-ms 50", tags=("alike",)),         # no workers, none needed
    fine("sentences-words-hidden", "sentences.py", "--workers 1 --batch 32 --lines 8 --gpu-ms 40", tags=("alike",)),
    fine("speech-fine", "speech.py", "workers=2 gpu_ms=90"),
    fine("shards-fine", "shards.py", "--workers 1 --gpu-ms 70"),
    fine("table-cpu", "table.py", "--threads 2 --width 512", scenario="none"),
    fine("digits-cpu", "digits.py", "--blas 2", scenario="none"),
    fine("digits-one-thread", "digits.py", "--blas 1 --models 2", scenario="none"),
    fine("charlm-fine", "charlm.py", "--gpu-ms 40"),
    fine("charlm-spin", "charlm.py", "--gpu-ms 120 --spin", tags=("alike",)),
    fine("charlm-item-hidden", "charlm.py", "--gpu-ms 150 --log-every 1", tags=("alike",)),          # waits, with nothing lost
    fine("charlm-deep-hidden", "charlm.py", "--depth 16 --gpu-us 30 --gpu-ms 60", tags=("alike",)),
    fine("charlm-idle-guest", "charlm.py", "--gpu-ms 40", injure={"other_job": "0 0 10"}, tags=("alike",)),
    fine("charlm-power", "charlm.py", "--gpu-ms 40", scenario=H100 + "\n  slow power clock 1920", tags=("alike",)),
    fine("charlm-tidy-rare", "charlm.py", "--journal 1 --tidy 300 --gpu-ms 30", tags=("alike",)),
    fine("stream-packed", "stream.py", "--threads 3 --gpu-ms 30", tags=("alike",)),
    fine("finetune-fine", "finetune.py", "--gpu-ms 40"),
    fine("finetune-track-rare", "finetune.py", "--track-every 60 --latency 20 --gpu-ms 40", tags=("alike",)),
    fine("finetune-track-hidden", "finetune.py", "--track-every 4 --latency 30 --gpu-ms 40", tags=("alike",)),    # the queue covers it
    fine("photos-inline-hidden", "photos.py", "--workers 0 --batch 4 --gpu-ms 60", tags=("alike",)),              # loads while the GPU works
    fine("finetune-bar-small", "finetune.py", "--bar 300 --gpu-ms 40", tags=("alike",)),
    fine("finetune-eval-rare", "finetune.py", "--eval-every 100 --eval-batches 2 --gpu-ms 30", tags=("alike",)),
    fine("citations-fine", "citations.py", "--vectorised --gpu-ms 50", tags=("alike",)),
    fine("tiles-cached", "tiles.py", "--batch 32 --gpu-ms 50", tags=("alike",)),
    fine("memory-reserved", "memory.py", "--fill 0.94 --gpu-ms 40", tags=("alike",)),               # full by choice
    fine("manygpus-fine", "manygpus.py", "--gpus 2 --gpu-ms 160", scenario=H100 + " x 2"),
    fine("ranks-fine", "ranks.py", "--gpu-ms 150", scenario=H100 + " x 2"),
    fine("photos-log-each", "photos.py", "--workers 1 --batch 4 --gpu-ms 180 --log-every 1", tags=("alike",)),
    fine("photos-one-enough", "photos.py", "--workers 1 --batch 4 --gpu-ms 60", tags=("alike",)),
    fine("photos-epochs-long", "photos.py", "--epoch-samples 800 --batch 4 --gpu-ms 50 --draft --workers 1", tags=("alike",)),
    fine("speech-inline-cheap", "speech.py", "workers=0 batch=1 gpu_ms=60", tags=("alike",)),
    fine("speech-guest", "speech.py", "workers=1 batch=4 gpu_ms=80", injure={"other_job": "0 0 4"}, tags=("alike",)),
    fine("shards-spare", "shards.py", "--workers 2 --batch 4 --gpu-ms 60", tags=("alike",)),
    fine("table-gpu", "table.py", "--device vgpu --gpu-ms 25 --threads 1 --width 64"),
    fine("sentences-worker", "sentences.py", "--pretokenized --workers 1 --gpu-ms 40", tags=("alike",)),
    fine("stream-one", "stream.py", "--threads 1 --gpu-ms 30", tags=("alike",)),
    fine("memory-startup", "memory.py", "--gpu-ms 40 --index 20", tags=("alike",)),
    fine("memory-fill-rises", "memory.py", "--gpu-ms 40 --fill 0.6 --host-mb 0.02", tags=("alike",)),
    fine("video-hidden", "video.py", "--clip-mb 16 --gpu-ms 60", tags=("alike",)),
    fine("video-pinned", "video.py", "--clip-mb 64 --gpu-ms 50 --pinned", tags=("alike",)),
]
