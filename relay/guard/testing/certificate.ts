import { importTestPackage } from '../../../lib/cli/dev/test-packages';

/** The part of npm `selfsigned` that is used. */
interface Selfsigned {
  generate(
    attributes: readonly { name: string; value: string }[],
    options: object,
  ): Promise<{ readonly private: string; readonly cert: string }>;
}

const { generate } = await importTestPackage<Selfsigned>('selfsigned/index.js');

const made = await generate([{ name: 'commonName', value: 'Kinora test' }], {
  keyType: 'ec',
  algorithm: 'sha256',
  // A clock that is set back meanwhile must not find it too new.
  notBeforeDate: new Date(Date.now() - 3_600_000),
  extensions: [
    { name: 'basicConstraints', cA: true },
    {
      name: 'subjectAltName',
      altNames: [
        { type: 2, value: '*.hooks.example' },
        { type: 2, value: 'localhost' },
        { type: 7, ip: '127.0.0.1' },
      ],
    },
  ],
});

/** A certificate for `*.hooks.example` and loopback with its key, made anew for each run. */
export const testCertificate = { key: made.private, cert: made.cert };
