# SPDX-License-Identifier: MIT
"""What `spotter run` adds to frameworks once a program has imported them (listen.py).

A hook reads clocks and numbers that are in host memory. It issues no work for a device, waits for nothing, and
an exception of its own ends in it.
"""
