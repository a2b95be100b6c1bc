import { expose, proxy, type Remote, wrap } from 'comlink';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KinoraError } from './errors';
import { failureOf } from './testing/failure';
import { installTransferHandlers } from './transfer-handlers';

const api = {
  async shape(): Promise<void> {
    throw new KinoraError('TENSOR_SHAPE', 'proj_out.weight is [10,64], expected [192,64].', {
      remedy: 'Fetch it again.',
    });
  },
  async unknown(): Promise<void> {
    throw new RangeError('Array buffer allocation failed');
  },
  async quota(): Promise<void> {
    throw new DOMException('The quota has been exceeded.', 'QuotaExceededError');
  },
  async memory(): Promise<void> {
    throw new RangeError('WebAssembly.instantiate(): Out of memory: Cannot allocate Wasm memory');
  },
  async text(): Promise<void> {
    throw 'a bare string';
  },
  /** Calls back and returns how the error of the callback arrived. */
  async calls(back: () => Promise<void>): Promise<string> {
    try {
      await back();
      return 'nothing';
    } catch (thrown) {
      return thrown instanceof KinoraError ? `${thrown.code}: ${thrown.remedy}` : 'another error';
    }
  },
  async fine(): Promise<number> {
    return 7;
  },
  async tells(listener: (word: string) => void): Promise<void> {
    listener('told');
  },
};

const { port1, port2 } = new MessageChannel();
let remote: Remote<typeof api>;

beforeAll(() => {
  installTransferHandlers();
  installTransferHandlers();
  expose(api, port1);
  remote = wrap<typeof api>(port2);
});

afterAll(() => {
  port1.close();
  port2.close();
});

test('a KinoraError keeps code, sentence, remedy and stack', async () => {
  const error = await failureOf(remote.shape());
  expect(error.toRecord()).toEqual({
    code: 'TENSOR_SHAPE',
    message: 'proj_out.weight is [10,64], expected [192,64].',
    remedy: 'Fetch it again.',
  });
  expect(error.stack).toContain('transfer-handlers.test');
});

test('other errors arrive with a matching code', async () => {
  const unknown = await failureOf(remote.unknown());
  expect(unknown.code).toBe('INTERNAL');
  expect(unknown.message).toContain('Array buffer allocation failed');
  expect((await failureOf(remote.quota())).code).toBe('STORAGE_FULL');
  expect((await failureOf(remote.memory())).code).toBe('OUT_OF_MEMORY');
  expect((await failureOf(remote.text())).message).toContain('a bare string');
});

test('an error of a callback is transferred to the worker', async () => {
  const seen = await remote.calls(
    proxy(async () => {
      throw new KinoraError('CANCELLED');
    }),
  );
  expect(seen).toBe('CANCELLED: Run it again when you like.');
});

test('values are not affected', async () => {
  expect(await remote.fine()).toBe(7);
});

test('a function that is an argument is called over the boundary', async () => {
  const told = new Promise<string>((resolve) => void remote.tells(resolve));
  await expect(told).resolves.toBe('told');
});
