/** `npm run keys` and `npm run webhooks`. */
import { keysCommand } from './keys';
import { type CommandWorld, runRelayCommand } from './relay-command';
import { webhooksCommand } from './webhooks';

const world: CommandWorld = {
  environment: process.env,
  out: (text) => void process.stdout.write(text),
  say: (text) => void process.stderr.write(text),
};
const [name, ...args] = process.argv.slice(2);
if (name === 'keys') process.exitCode = await runRelayCommand(keysCommand, args, world);
else process.exitCode = await runRelayCommand(webhooksCommand, args, world);
