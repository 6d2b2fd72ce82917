"""What only an NVIDIA GPU uses: no AMD description has these keys, and its replays skip this code."""
