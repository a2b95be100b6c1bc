import { expect, test } from 'vitest';
import { readConfig } from '../../relay/config';
import { leaseFacts, limitFacts } from './settings';

test('the page tells the defaults that the server has', () => {
  const config: Readonly<Record<string, unknown>> = readConfig({});
  const told = [...limitFacts, ...leaseFacts];
  expect(Object.fromEntries(told.map(({ name, value }) => [name, value]))).toEqual(
    Object.fromEntries(told.map(({ name }) => [name, config[name]])),
  );
});
