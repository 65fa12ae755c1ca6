# SPDX-License-Identifier: MIT
"""Programs of frameworks that Debian does not have: only where they can be imported. What the fields mean: cases.py."""
from cases import fine, ill

FRAMEWORKS = [
    ill("tf-photos-serial", "tf_photos.py", ("no_workers", "too_few_workers"), "--serial --batch 32", "--batch 32",
        needs=("tensorflow",)),
    fine("tf-photos-fine", "tf_photos.py", "--gpu-ms 150", needs=("tensorflow",)),
    ill("tf-reviews-python", "tf_reviews.py", ("python_loop_preprocessing", "tokenization"), "--py-function --batch 1024",
        "--batch 1024", needs=("tensorflow",)),
    ill("gluon-inline", "gluon_photos.py", "no_workers", "--workers 0", "--workers 2", needs=("mxnet",)),
    ill("hf-inline", "hf_trainer.py", ("no_workers", "tokenization"), "--workers 0", "--workers 2", needs=("transformers",)),
    ill("lightning-inline", "lightning_fit.py", "no_workers", "--workers 0", "--workers 2", needs=("lightning",)),
]
