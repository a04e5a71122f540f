#!/usr/bin/env python3
"""Writes an assembler file that puts files into the program: embed.py OUTPUT SYMBOL=FILE..."""
import pathlib
import sys


def main():
    output, *pairs = sys.argv[1:]
    lines = ['.section .rodata']
    for pair in pairs:
        symbol, path = pair.split('=', 1)
        lines += [
            f'.global {symbol}',
            f'.hidden {symbol}',
            '.balign 64',
            f'{symbol}:',
            f'.incbin "{pathlib.Path(path).resolve()}"',
        ]
    lines.append('.section .note.GNU-stack, "", %progbits')
    pathlib.Path(output).write_text('\n'.join(lines) + '\n')


main()
