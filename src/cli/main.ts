#!/usr/bin/env node
/** The command: connects the program to this process, and is the one place that ends it. */
import { runProgram } from './program.js';

// `cofferdam replay --list | head` closes the pipe early: that is no error. What serves goes on without it, and ends as always:
// there is a key file to remove, and open requests are to be finished.
const serves = process.argv[2] === 'serve' || process.argv[2] === 'engine';
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // A terminal that went away answers with EIO.
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
    if (!serves) process.exit(0);
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
