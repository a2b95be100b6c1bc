import { expect, test } from 'vitest';
import { readConfig } from '../../relay/config';
import { leaseFacts, limitFacts } from './limits';

test('the page shows the defaults of the server', () => {
  const config: Readonly<Record<string, unknown>> = readConfig({});
  const facts = [...limitFacts, ...leaseFacts];
  expect(Object.fromEntries(facts.map(({ name, value }) => [name, value]))).toEqual(
    Object.fromEntries(facts.map(({ name }) => [name, config[name]])),
  );
});
