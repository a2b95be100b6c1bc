import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports that systems give to nobody who asks for any: those begin at 32768 on Linux (ip(7),
 * ip_local_port_range), at 49152 elsewhere. `fetch` refuses none of these.
 */
const [first, end] = [20_000, 32_768];

/**
 * A free port, for what takes it in a while, or gives it up and takes it again. One that the system gave
 * may by then be another's: every test server and every connection asks the system for one.
 *
 * @throws Error when a hundred of them are taken
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(first, end);
    const probe = createServer();
    try {
      await once(probe.listen(port, '127.0.0.1'), 'listening');
    } catch {
      continue;
    }
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
  throw new Error('There is no free port.');
}
