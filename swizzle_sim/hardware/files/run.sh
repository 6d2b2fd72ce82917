#!/bin/sh
# Confirms $kernel on $title. Options of confirm.py may follow: sh run.sh --no-count
set -eu
cd "$$(dirname "$$0")"
exec "$${PYTHON:-python3}" confirm.py "$$@"
