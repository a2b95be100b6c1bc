/** The process of `startNodeProcess`: one node without Next, with the settings of its environment. */
import { endOnSignals } from '../http/process';
import { startTestRelay } from './server';

const settings = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    /^(PORT|DATABASE_URL|KINORA_\w+|S3_\w+)$/.test(name) && value !== undefined
      ? [[name, value]]
      : [],
  ),
);
const node = await startTestRelay({ settings, folder: settings.KINORA_DATA ?? '' });
endOnSignals({
  log: node.relay.log,
  print: () => undefined,
  stop: () => node.stop(),
  limitMs: 15_000,
  withParent: true,
});
const { origin, apiKey, workerToken } = node;
const firstStart = apiKey === '' ? null : { apiKey, workerToken };
process.stdout.write(`OPEN ${JSON.stringify({ origin, firstStart })}\n`);
