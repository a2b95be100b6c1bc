import { describe, expect, it } from 'vitest';
import type { Config } from '../config';
import type { JobRow, UploadRow } from '../store/schema';
import { createLinks } from './links';

const config = { KINORA_PUBLIC_URL: undefined, KINORA_HOST: '127.0.0.1', PORT: 4000 };
const id = '0123456789abcdef0123456789abcdef';
const later = new Date(Math.ceil(Date.now() / 1000) * 1000 + 60_000);
const upload = { id, filename: 'ä b.png', createdAt: new Date(), expiresAt: later } as UploadRow;
const job = {
  id,
  status: 'completed',
  attempt: 1,
  leaseToken: 'lease',
  deadline: later,
  outputKey: 'outputs/01/x',
  outputNonce: 'nonce',
  outputExpiresAt: later,
} as JobRow;
const links = createLinks({ config, secret: 'secret' });

describe('links', () => {
  it('begin with the configured address, else with host and port', () => {
    expect(links.prediction(id)).toBe(`http://127.0.0.1:4000/api/v3/predictions/${id}/result`);
    const at = (settings: Partial<Config>) =>
      createLinks({ config: { ...config, ...settings }, secret: 'secret' }).publicUrl;
    expect(at({ KINORA_PUBLIC_URL: 'https://kinora.example' })).toBe('https://kinora.example');
    expect(at({ KINORA_HOST: '0.0.0.0' })).toBe('http://127.0.0.1:4000');
    expect(at({ KINORA_HOST: '::1' })).toBe('http://[::1]:4000');
  });

  it('are worth something for one purpose, id, nonce and time only', () => {
    const query = new URL(links.output(job) ?? '').searchParams;
    expect(links.verify('video', id, 'nonce', query)).toEqual(later);
    expect(links.verify('image', id, 'nonce', query)).toBeNull();
    expect(links.verify('video', id.replace('0', '1'), 'nonce', query)).toBeNull();
    expect(links.verify('video', id, 'other', query)).toBeNull();
    const longer = new URLSearchParams(query);
    longer.set('expires', String(Number(query.get('expires')) + 1));
    expect(links.verify('video', id, 'nonce', longer)).toBeNull();
    expect(links.verify('video', id, 'nonce', new URLSearchParams())).toBeNull();
    const other = createLinks({ config, secret: 'another' });
    expect(other.verify('video', id, 'nonce', query)).toBeNull();
  });

  it('name a video only while there is one', () => {
    expect(links.output(job)).toContain(`/files/video/${id}.mp4?expires=`);
    expect(links.output({ ...job, status: 'failed' })).toBeNull();
    expect(links.output({ ...job, outputKey: null })).toBeNull();
    expect(links.output({ ...job, outputExpiresAt: new Date(Date.now() - 1) })).toBeNull();
  });

  it('tell their own uploads from other addresses', () => {
    const url = links.uploadDownload(upload);
    expect(links.uploadOf(url)).toBe(id);
    expect(links.uploadOf(`${url}0`)).toBeNull();
    const { port } = new URL(url);
    for (const name of [`LOCALHOST:${port}`, `localhost.:${port}`, `[::1]:${port}`, '127.1:9']) {
      const other = url.replace(`127.0.0.1:${port}`, name);
      expect(links.uploadOf(other), other).toBe(id);
      expect(links.isOwnUpload(`${other}0`), other).toBe(name !== '127.1:9');
    }
    expect(links.isOwnUpload('https://example.com/files/uploads/a/b')).toBe(false);
    expect(links.uploadOf(links.uploadTarget(upload))).toBeNull();
    const old = { ...upload, expiresAt: new Date(Date.now() - 2000) };
    expect(links.uploadOf(links.uploadDownload(old))).toBeNull();
    expect(links.uploadOf('not an address')).toBeNull();
  });
});
