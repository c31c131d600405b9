#!/usr/bin/env node
/** The command: connects the program to this process, and is the one place that ends it. */
import { runProgram } from './program.js';

// `cofferdam replay --list | head` closes the pipe early: that is no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}

process.exitCode = await runProgram(
  process.argv.slice(2),
  {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    variables: process.env,
    outIsTerminal: process.stdout.isTTY,
  },
  { faultNames: async () => (await import('../handoff/faults.js')).FAULTS },
);
