import { runKeys } from './cli-run';

process.exitCode = await runKeys(process.argv.slice(2), {
  environment: process.env,
  out: (text) => void process.stdout.write(text),
  say: (text) => void process.stderr.write(text),
});
