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
  const details = [{ field: 'body', message: 'at most 5 bytes' }];
  const { message } = new ApiError('TOO_LARGE', undefined, { details }).toBody('id');
  expect(message).toBe('The body is too large. Stay below the limit that `details` names.');
});
