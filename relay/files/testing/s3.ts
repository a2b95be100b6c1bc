import { mkdtemp, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { importTestPackage } from '../../../lib/cli/dev/test-packages';

/** The parts of npm `s3rver` that are used; it brings no types. */
interface S3rverModule {
  readonly default: new (options: {
    address: string;
    port: number;
    directory: string;
    silent: boolean;
    configureBuckets: readonly { name: string }[];
  }) => {
    run(): Promise<AddressInfo>;
    close(): Promise<void>;
    readonly httpServer: Server;
  };
}

/** A bucket on this machine. */
export interface TestBucket {
  /** Settings, as in the environment. */
  readonly settings: {
    readonly S3_BUCKET: string;
    readonly S3_ENDPOINT: string;
    readonly S3_REGION: string;
    readonly S3_ACCESS_KEY_ID: string;
    readonly S3_SECRET_ACCESS_KEY: string;
    readonly S3_PREFIX: string;
  };
  /** Stops answering; what was stored goes. */
  stop(): Promise<void>;
}

/** Starts an S3 server with one bucket on a free port of the loopback address. */
export async function startBucket(): Promise<TestBucket> {
  const directory = await mkdtemp(path.join(tmpdir(), 'kinora-s3-'));
  const name = 'kinora-test';
  const { default: S3rver } = await importTestPackage<S3rverModule>('s3rver/lib/s3rver.js');
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    directory,
    silent: true,
    configureBuckets: [{ name }],
  });
  const { port } = await server.run();
  return {
    settings: {
      S3_BUCKET: name,
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_REGION: 'us-east-1',
      // The one key that this server knows.
      S3_ACCESS_KEY_ID: 'S3RVER',
      S3_SECRET_ACCESS_KEY: 'S3RVER',
      S3_PREFIX: 'test/',
    },
    async stop() {
      server.httpServer.closeAllConnections();
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
