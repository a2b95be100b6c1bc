import { startServer } from '../../lib/cli/dev/app-server';
import { ensureBuild } from '../../lib/cli/dev/build';

/** Builds the app where needed and serves it for the whole run; returns what ends it. */
async function setUp(): Promise<() => Promise<void>> {
  await ensureBuild((line) => console.log(line));
  const server = await startServer();
  process.env.KINORA_ORIGIN = server.origin;
  return server.stop;
}

// biome-ignore lint/style/noDefaultExport: Playwright takes the default export of a global setup.
export default setUp;
