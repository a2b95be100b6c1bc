import { expect, test } from 'vitest';
import { webhookOf } from './submit';

const model = 'http://kinora.test/api/v3/kinora/wan-2.2/i2v-720p-lora';

test.each([
  ['', null],
  ['?x=1', null],
  ['?webhook=https%3A%2F%2Fa.example%2Fhook%3Fa%3D1%26b%3D2', 'https://a.example/hook?a=1&b=2'],
  ['?webhook=https%3A%2F%2Fa.example%2F&x=1', 'https://a.example/'],
  // Glued to the model's name as it is: its own query goes with it
  ['?webhook=https://a.example/hook?a=1&b=2', 'https://a.example/hook?a=1&b=2'],
  ['?webhook=https://a.example/h%20k?a=1%262', 'https://a.example/h%20k?a=1%262'],
  ['?x=1&webhook=https://a.example/', 'https://a.example/'],
  ['?webhook=', null],
  ['?webhook=%20', null],
  ['?webhook=not-a-url', 'not-a-url'],
])('the webhook of %s is %s', (query, webhook) => {
  expect(webhookOf(model + query, '')).toBe(webhook);
});
