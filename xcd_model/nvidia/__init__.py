"""What only an NVIDIA GPU uses: no AMD description has these keys, and the replays skip this code for it."""
