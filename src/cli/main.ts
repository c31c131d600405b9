#!/usr/bin/env node
/** The command: connects the program to this process, and is the one place that ends it. */
import { runProgram } from './program.js';

// `cofferdam audit … | head` closes the pipe early: that is no error, and no verdict either. The run goes on to its end without a
// reader, so that its exit code is what it found; what serves ends as always, since it has a key file to remove.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // A terminal that went away answers with EIO.
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
  });
}

async function ask(question: string): Promise<string | null> {
  const { createInterface } = await import('node:readline');
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    lines.once('close', () => resolve(null));
    // Ctrl-C at a question answers it: nothing is running yet.
    lines.once('SIGINT', () => lines.close());
    lines.question(question, (line) => {
      resolve(line);
      lines.close();
    });
  });
}

process.exitCode = await runProgram(
  process.argv.slice(2),
  {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    variables: process.env,
    outIsTerminal: process.stdout.isTTY,
    errIsTerminal: process.stderr.isTTY,
    ...(process.stdin.isTTY && process.stderr.isTTY ? { ask } : {}),
  },
  { faultNames: async () => (await import('../handoff/faults.js')).FAULTS },
);
