# SPDX-License-Identifier: MIT
"""What is done to a program from outside: limits, neighbours, slow storage. All of it is real."""
