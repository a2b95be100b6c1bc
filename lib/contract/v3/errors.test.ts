import { expect, test } from 'vitest';
import { ApiError, apiErrorCodes } from './errors';

test('every 503 has Retry-After', () => {
  const unavailable = apiErrorCodes
    .map((code) => new ApiError(code))
    .filter(({ status }) => status === 503);
  expect(unavailable.map(({ code }) => code)).toEqual(['STORAGE_DOWN', 'SHUTTING_DOWN']);
  for (const { headers } of unavailable) expect(headers).toEqual({ 'Retry-After': '5' });
  const later = new ApiError('STORAGE_DOWN', undefined, { headers: { 'Retry-After': '60' } });
  expect(later.headers).toEqual({ 'Retry-After': '60' });
  expect(new ApiError('INTERNAL').headers).toEqual({});
});

test.each(apiErrorCodes)('%s does not refer to details without having any', (code) => {
  expect(new ApiError(code).toBody('id').message).toMatch(/^(?!.*`details`).*\.$/);
});

test('a remedy may refer to details if there are some', () => {
  const details = [{ field: 'scope', message: 'admin' }];
  const { message } = new ApiError('FORBIDDEN', undefined, { details }).toBody('id');
  expect(message).toBe('This key may not do that. Use a key with the scope that `details` names.');
});
