import { expect, it } from 'vitest';
import { KinoraError } from '../contract';
import { modelsHelp, parseModelsOptions } from './models-options';

const parse = (line: string) => parseModelsOptions(line.split(' ').filter(Boolean));

it.each([
  ['', { action: { command: 'list' }, hub: undefined }],
  ['list --hub http://h', { action: { command: 'list' }, hub: 'http://h' }],
  [
    'add owner/name --revision v1',
    {
      action: { command: 'add', source: 'owner/name', revision: 'v1', kind: 'model' },
      hub: undefined,
    },
  ],
  [
    'add --lora ./a.safetensors',
    {
      action: { command: 'add', source: './a.safetensors', revision: undefined, kind: 'lora' },
      hub: undefined,
    },
  ],
  [
    'download wan --precision int4 --adapter LongLive-Plug --adapter none -y --accept-terms',
    {
      action: {
        command: 'download',
        id: 'wan',
        precision: 'int4',
        adapters: ['LongLive-Plug', 'none'],
        yes: true,
        acceptTerms: true,
        safetyChecker: true,
      },
      hub: undefined,
    },
  ],
  [
    'decoders wan ./a.mp4 --backend wasm',
    {
      action: { command: 'decoders', id: 'wan', video: './a.mp4', backend: 'wasm' },
      hub: undefined,
    },
  ],
  [
    'download wan --no-safety-checker',
    {
      action: {
        command: 'download',
        id: 'wan',
        precision: undefined,
        adapters: undefined,
        yes: false,
        acceptTerms: false,
        safetyChecker: false,
      },
      hub: undefined,
    },
  ],
  ['verify wan', { action: { command: 'verify', id: 'wan' }, hub: undefined }],
  ['delete wan', { action: { command: 'delete', id: 'wan' }, hub: undefined }],
])('reads "%s"', (line, expected) => {
  expect(parse(line)).toEqual(expected);
});

it('knows --help, and the help names every command', () => {
  expect(parse('download --help')).toBe('help');
  for (const command of ['list', 'add', 'download', 'verify', 'delete']) {
    expect(modelsHelp).toContain(`npm run models -- ${command}`);
  }
});

it.each([
  ['fetch wan', 'REQUEST_INVALID', 'There is no command "fetch".'],
  ['constructor', 'REQUEST_INVALID', 'There is no command "constructor".'],
  ['download', 'REQUEST_INVALID', 'download needs the id of a model.'],
  ['add', 'REQUEST_INVALID', 'add needs an address, or a path of this machine.'],
  ['list wan', 'REQUEST_INVALID', "Unexpected argument 'wan'."],
  ['delete a b', 'REQUEST_INVALID', "Unexpected argument 'b'."],
  ['delete a --yes', 'REQUEST_INVALID', 'delete takes no --yes.'],
  ['verify a --no-safety-checker', 'REQUEST_INVALID', 'verify takes no --no-safety-checker.'],
  ['download a --precision 8', 'PARAMETER_INVALID', '--precision must be one of'],
  ['list --colour', 'REQUEST_INVALID', "Unknown option '--colour'."],
])('refuses "%s"', (line, code, sentence) => {
  let thrown: unknown;
  try {
    parse(line);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(KinoraError);
  expect(thrown).toMatchObject({ code, message: expect.stringContaining(sentence) });
});
