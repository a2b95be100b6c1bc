/** @module-tag full */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseParameters, safetySchema, uncheckedSafety } from '../../../lib/contract';
import { endpoints, type Share, type ShareBody, scopes } from '../../../lib/contract/v3';
import { sniffImage } from '../../../lib/video/sniff';
import { jobs, type NewJobRow, shares } from '../../store/schema';
import { ProtocolWorker, type ProtocolWorkerOptions } from '../../testing/protocol-worker';
import { makeVideo } from '../../testing/video';
import { type FilesTest, startFilesTest } from '../testing/node';

const publicUrl = 'https://kinora.example';
const seed = 4_242_424_242;
const prompt = 'A "boat" <script>alert(1)</script> sails & turns';

let node: FilesTest;
let otherKey = '';
beforeAll(async () => {
  node = await startFilesTest({
    settings: { KINORA_PUBLIC_URL: publicUrl, KINORA_REPORT_ADDRESS: 'abuse@kinora.example' },
  });
  const other = { kind: 'api', owner: 'other', name: 'other', scopes: [...scopes] } as const;
  otherKey = (await node.relay.keys.create(other)).key;
}, 60_000);
afterAll(() => node?.stop());

const frame = await readFile(new URL('../../../public/samples/still.jpg', import.meta.url));
/** What a worker sends as its framed image. */
const jpeg = frame.toString('base64');

/** A prediction that a worker has completed. */
async function completed(
  input: object = {},
  options: Pick<ProtocolWorkerOptions, 'video' | 'report'> = {},
): Promise<string> {
  const pictures = { image: jpeg, ...('last_image' in input && { last_image: jpeg }) };
  const { body } = await node.api('/api/v3/kinora/wan-2.2/i2v-720p-lora', {
    image: `data:image/png;base64,${node.image.toString('base64')}`,
    prompt,
    seed,
    ...input,
  });
  const worker = new ProtocolWorker({
    origin: node.origin,
    token: node.workerToken,
    ...options,
    report: { ...options.report, pictures: { ...pictures, ...options.report?.pictures } },
  });
  expect(await worker.once(AbortSignal.timeout(20_000))).toBe(true);
  return body.data?.id ?? '';
}

const send = async (method: string, id: string, body?: object, key = node.apiKey) => {
  const { status, json } = await node.send(method, `/api/v3/predictions/${id}/share`, {
    key,
    body,
  });
  return { status, ...json };
};
type Asked = Omit<ShareBody, 'include'> & { include?: Partial<ShareBody['include']> };
async function shared(id: string, body: Asked = {}): Promise<Share> {
  const { status, data } = await send('POST', id, body);
  expect(status).toBe(200);
  return data as Share;
}
/** What a crawler or a browser without a script gets. */
async function read(path: string, init: RequestInit = {}) {
  const answer = await node.get(path, init);
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}
/** The `content` of a page's tags by `name` or `property`, unescaped. */
function tagsOf(page: string): Record<string, string> {
  const found = page.matchAll(/<meta (?:name|property)="([^"]+)" content="([^"]*)">/g);
  const plain = (text: string) =>
    text
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&quot;', '"')
      .replaceAll('&apos;', "'")
      .replaceAll('&amp;', '&');
  return Object.fromEntries([...found].map(([, name, content]) => [name, plain(content ?? '')]));
}
const change = (id: string, set: Partial<NewJobRow>) =>
  node.relay.store.db.update(jobs).set(set).where(eq(jobs.id, id));

test('a link shows the video and nothing else, unless it is ticked', async () => {
  const id = await completed();
  const link = await shared(id);
  expect(link).toMatchObject({
    prediction_id: id,
    url: `${publicUrl}/s/${link.id}`,
    include: { prompt: false, settings: false, image: false },
    allow_index: false,
  });
  expect(link.id).not.toBe(id);
  const bare = await read(`/s/${link.id}`);
  expect(bare.status).toBe(200);
  expect(bare.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(bare.text).toContain(`src="${link.id}/video.mp4"`);
  for (const secret of ['boat', 'Seed', String(seed), `${link.id}/image`, 'Open in Kinora', id]) {
    expect(bare.text, secret).not.toContain(secret);
  }
  expect((await read(`/s/${link.id}/image`)).status).toBe(404);
  expect(JSON.parse((await read(`/s/${link.id}/request`)).text).data).toEqual({
    parameters: {},
    image: false,
  });

  // The same address shows what is ticked later.
  const ticked = await shared(id, { include: { prompt: true, settings: true, image: true } });
  expect(ticked.url).toBe(link.url);
  const { text } = await read(`/s/${link.id}`);
  expect(text).toContain(
    'A &quot;boat&quot; &lt;script&gt;alert(1)&lt;/script&gt; sails &amp; turns',
  );
  expect(text).toContain(`<dt>Seed</dt><dd>${seed}</dd>`);
  expect(text).toContain(`href="../?share=${link.id}"`);
  expect(text.match(/<script/g), 'the button that copies the prompt').toHaveLength(1);
  const image = await node.get(`/s/${link.id}/image`);
  // Not the file that was submitted, but the JPEG of its worker.
  expect(image.headers.get('content-type')).toBe('image/jpeg');
  expect(Buffer.from(await image.arrayBuffer()).equals(frame)).toBe(true);
  expect((await node.get(`/s/${link.id}/last-image`)).status).toBe(404);
  const { data } = JSON.parse((await read(`/s/${link.id}/request`)).text);
  expect(data).toMatchObject({
    parameters: { prompt, seed, duration: 5 },
    profile: 'standard',
    image: true,
  });
});

test('a crawler gets the tags of Open Graph, player card and oEmbed', async () => {
  const { id, url, prediction_id } = await shared(await completed(), {
    include: { prompt: true, image: true },
  });
  const { text, headers } = await read(`/s/${id}`, { headers: { 'User-Agent': 'Twitterbot/1.0' } });
  expect(tagsOf(text)).toMatchObject({
    'og:type': 'video.other',
    'og:url': url,
    'og:title': prompt,
    'og:description': prompt,
    'og:site_name': 'Kinora',
    'og:video': `${url}/video.mp4`,
    'og:video:secure_url': `${url}/video.mp4`,
    'og:video:type': 'video/mp4',
    'og:video:width': '1280',
    'og:video:height': '720',
    'og:image': `${url}/image`,
    'twitter:card': 'player',
    'twitter:title': prompt,
    'twitter:player': `${url}/embed`,
    'twitter:player:width': '1280',
    'twitter:player:height': '720',
    'twitter:player:stream': `${url}/video.mp4`,
    'twitter:image': `${url}/image`,
    robots: 'noindex',
  });
  expect(headers.get('x-robots-tag')).toBe('noindex');
  expect(headers.get('cache-control')).toBe('no-store');
  expect(headers.get('content-security-policy')).toContain(
    "default-src 'none'; style-src 'sha256-",
  );
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  expect(headers.get('cross-origin-embedder-policy')).toBeNull();
  expect(text).toContain('href="mailto:abuse@kinora.example?subject=');

  const discovered = /<link rel="alternate" type="application\/json\+oembed" href="([^"]+)"/.exec(
    text,
  );
  const address = new URL(discovered?.[1]?.replaceAll('&amp;', '&') ?? '');
  const oembed = await read(`${address.pathname}${address.search}&maxwidth=640`);
  expect(JSON.parse(oembed.text)).toMatchObject({
    version: '1.0',
    type: 'video',
    title: prompt,
    width: 640,
    height: 360,
    html: expect.stringContaining(`src="${url}/embed" width="640" height="360"`),
  });
  const refused = (query: string) => read(`/oembed?${query}`).then(({ status }) => status);
  expect(await refused(`url=${encodeURIComponent(url)}&format=xml`)).toBe(501);
  expect(await refused(`url=${publicUrl}/s/${'0'.repeat(32)}`)).toBe(404);
  expect(await refused('maxwidth=640')).toBe(400);
  // Only pages of links of this server: no other page, no other server, no other scheme or folder.
  const foreign = [
    `${publicUrl}/keys`,
    `https://other.example/s/${id}`,
    `https://kinora.example.other.example/s/${id}`,
    `https://other.example/?to=${publicUrl}/s/${id}`,
    `https://kinora.example@other.example/s/${id}`,
    `http://kinora.example/s/${id}`,
    `${publicUrl}:8443/s/${id}`,
    `${publicUrl}/other/s/${id}`,
    `${publicUrl}/s/${id}/video.mp4`,
    `/s/${id}`,
  ];
  for (const other of foreign) {
    expect(await refused(`url=${encodeURIComponent(other)}`), other).toBe(404);
  }
  for (const own of [url, `${url}/`, `${url}?from=mail#top`]) {
    expect(await refused(`url=${encodeURIComponent(own)}`), own).toBe(200);
  }
  // Other sites may show this page in a frame, and only this one.
  const embed = await read(`/s/${id}/embed`);
  expect(embed.headers.get('content-security-policy')).toContain('frame-ancestors *');
  expect(embed.text).toContain('src="video.mp4"');

  await shared(prediction_id, { allow_index: true });
  const listed = await read(`/s/${id}`);
  expect(listed.headers.get('x-robots-tag')).toBeNull();
  expect(tagsOf(listed.text).robots).toBeUndefined();
});

test('the video is sent by ranges, and cannot act as a page', async () => {
  const link = await shared(await completed(), { include: { prompt: true } });
  const path = `/s/${link.id}/video.mp4`;
  const whole = await node.get(path);
  const bytes = Buffer.from(await whole.arrayBuffer());
  expect(whole.headers.get('content-type')).toBe('video/mp4');
  expect(whole.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
  expect(whole.headers.get('x-content-type-options')).toBe('nosniff');
  expect(whole.headers.get('accept-ranges')).toBe('bytes');
  expect(whole.headers.get('x-robots-tag')).toBe('noindex');
  const part = await node.get(path, { headers: { Range: 'bytes=100-199' } });
  expect(part.status).toBe(206);
  expect(part.headers.get('content-range')).toBe(`bytes 100-199/${bytes.length}`);
  expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(100, 200))).toBe(true);
  const head = await node.get(path, { method: 'HEAD' });
  expect(head.headers.get('content-length')).toBe(String(bytes.length));
  const seam = bytes.indexOf('mdat') + 4;
  for (const [first, last] of [
    [0, 0],
    [seam - 5, seam + 5],
    [seam, seam],
    [seam - 1, bytes.length - 1],
    [bytes.length - 1, bytes.length - 1],
  ] as const) {
    const answer = await node.get(path, { headers: { Range: `bytes=${first}-${last}` } });
    expect(answer.headers.get('content-length')).toBe(String(last - first + 1));
    const piece = Buffer.from(await answer.arrayBuffer());
    expect(piece.equals(bytes.subarray(first, last + 1)), `${first}-${last}`).toBe(true);
  }
});

test('files tell nothing of the request: they are the stored bytes, whatever the link shows', async () => {
  const negative = 'no-umbrella-please';
  const lora = 'someone/secret-style/weights.safetensors';
  const id = await completed({
    negative_prompt: negative,
    loras: [{ path: lora, scale: 1 }],
    last_image: `data:image/png;base64,${node.image.toString('base64')}`,
  });
  const everything = { prompt: true, settings: true, image: true };
  const { id: link } = await shared(id, { include: everything });
  const { body } = await node.api(`/api/v3/predictions/${id}`);
  const output = new URL(body.data?.outputs?.[0] ?? '').href.replace(publicUrl, node.origin);
  const addresses = ['video.mp4', 'image', 'last-image'].map((file) => `/s/${link}/${file}`);
  for (const address of [output, ...addresses]) {
    const file = await node.get(address);
    expect(file.status, address).toBe(200);
    const bytes = Buffer.from(await file.arrayBuffer());
    const secrets = ['boat', negative, String(seed), id, 'secret-style', 'udta', 'Exif'];
    expect(secrets.filter((secret) => bytes.includes(secret))).toEqual([]);
  }
  const path = `/s/${link}/video.mp4`;
  const [own, before] = [await node.get(output), await node.get(path)];
  await shared(id, { include: { prompt: false, settings: false, image: false } });
  const after = await node.get(path);
  const tags = [own, before, after].map(({ headers }) => headers.get('etag'));
  expect(new Set(tags).size).toBe(1);
  const [first, ...others] = await Promise.all(
    [own, before, after].map(async (file) => Buffer.from(await file.arrayBuffer())),
  );
  for (const bytes of others) expect(first && bytes.equals(first)).toBe(true);
});

test('conditions are those of RFC 9110', async () => {
  const link = await shared(await completed());
  const path = `/s/${link.id}/video.mp4`;
  const status = async (headers: Record<string, string>, method = 'GET') =>
    (await node.get(path, { method, headers: { 'Cache-Control': 'max-age=0', ...headers } }))
      .status;
  const tag = (await node.get(path, { method: 'HEAD' })).headers.get('etag') ?? '';
  const Range = 'bytes=0-9';
  expect(await status({ Range, 'If-Range': tag })).toBe(206);
  expect(await status({ Range, 'If-Range': `W/${tag}` })).toBe(200);
  expect(await status({ Range, 'If-Range': new Date().toUTCString() })).toBe(200);
  for (const method of ['GET', 'HEAD']) {
    for (const right of ['*', tag, `"a", ${tag}`]) {
      expect(await status({ 'If-Match': right }, method), right).toBe(200);
    }
    for (const wrong of ['"a"', `W/${tag}`, `"a", W/${tag}`]) {
      expect(await status({ 'If-Match': wrong }, method), wrong).toBe(412);
    }
  }
  // The tag of If-None-Match may be weak; If-Match comes first.
  expect(await status({ 'If-None-Match': `W/${tag}` })).toBe(304);
  expect(await status({ 'If-None-Match': tag, 'If-Match': '"a"' })).toBe(412);
  const refusal = await read(path, { headers: { 'If-Match': '"a"' } });
  expect(JSON.parse(refusal.text)).toMatchObject({ code: 412, error_code: 'PRECONDITION_FAILED' });
  expect(refusal.headers.get('etag')).toBeNull();
});

test('an end image is shown with the start image', async () => {
  const png = `data:image/png;base64,${node.image.toString('base64')}`;
  const id = await completed({ last_image: png, last_image_at: 2.5 });
  const { id: link } = await shared(id);
  expect((await node.get(`/s/${link}/last-image`)).status).toBe(404);
  expect((await read(`/s/${link}/request`)).text).not.toContain('last_image');
  await shared(id, { include: { settings: true } });
  expect((await read(`/s/${link}/request`)).text).not.toContain('last_image');
  await shared(id, { include: { image: true, settings: false } });
  expect((await node.get(`/s/${link}/last-image`)).status).toBe(200);
  expect(JSON.parse((await read(`/s/${link}/request`)).text).data).toMatchObject({
    image: true,
    last_image: true,
    parameters: { last_image_at: 2.5 },
  });
  expect((await read(`/s/${link}`)).text).toContain(`src="${link}/last-image"`);
});

test('a second request changes what it names, and the rest stays', async () => {
  const id = await completed();
  const timed = await shared(id, { expires_in_seconds: 60, include: { prompt: true } });
  const second = await shared(id, { allow_index: true });
  expect(second).toEqual({ ...timed, allow_index: true });
  const third = await shared(id, { include: { settings: true } });
  expect(third).toEqual({ ...second, include: { prompt: false, settings: true, image: false } });
  expect(await shared(id)).toEqual(third);
  const longer = await shared(id, { expires_in_seconds: 3600 });
  expect(Date.parse(longer.expires_at) - Date.parse(third.expires_at)).toBeGreaterThan(3_500_000);
});

test('a request that is not understood changes nothing', async () => {
  const id = await completed();
  const link = await shared(id, { expires_in_seconds: 3600 });
  const wrong: [body: object, field: string, sentence: RegExp][] = [
    [{ include: null }, 'include', /^include must be an object, not null/],
    [{ expires_in_seconds: null }, 'expires_in_seconds', /not null/],
    [{ expires_in: 60 }, 'body', /^The body has no field expires_in\./],
    [{ include: { prompts: true } }, 'include', /^include has no field prompts\./],
    [{ include: { prompt: null } }, 'include.prompt', /not null/],
    [{ include: [] }, 'include', /must be an object/],
  ];
  for (const [body, field, sentence] of wrong) {
    const answer = await send('POST', id, body);
    expect(answer, JSON.stringify(body)).toMatchObject({
      status: 400,
      error_code: 'INVALID_PARAMETER',
      details: [{ field, message: expect.stringMatching(sentence) }],
    });
  }
  expect(await shared(id)).toEqual(link);
});

/** What each address of a link answers. */
const statusesOf = (id: string) =>
  Promise.all(
    ['', '/embed', '/video.mp4', '/image', '/request'].map(
      async (file) => (await read(`/s/${id}${file}`)).status,
    ),
  );
const all = (status: number) => [status, status, status, status, status];

test('a revoked link is gone, a new one has another address', async () => {
  const id = await completed();
  const first = await shared(id, { include: { image: true } });
  expect(await statusesOf(first.id)).toEqual(all(200));
  expect((await send('DELETE', id)).data).toEqual({ revoked: true });
  expect((await send('DELETE', id)).data).toEqual({ revoked: false });
  expect(await statusesOf(first.id)).toEqual(all(410));
  const page = await read(`/s/${first.id}`);
  expect(page.text).toContain('This link has ended');
  const chinese = await read(`/s/${first.id}`, {
    headers: { 'Accept-Language': 'zh-CN,en;q=0.5' },
  });
  expect(chinese.text).toMatch(/<html lang="zh">.*此链接已失效/s);
  expect(page.headers.get('x-robots-tag')).toBe('noindex');
  expect(JSON.parse((await read(`/s/${first.id}/video.mp4`)).text)).toMatchObject({
    error_code: 'SHARE_ENDED',
  });
  const second = await shared(id);
  expect(second.id).not.toBe(first.id);
  expect((await read(`/s/${second.id}`)).status).toBe(200);
  expect(await statusesOf('0'.repeat(32))).toEqual(all(404));
  expect((await read('/s/none')).status).toBe(404);
});

test('a link ends at its time, with its video, and with its prediction', async () => {
  const id = await completed();
  const timed = await shared(id, { expires_in_seconds: 60 });
  expect(Date.parse(timed.expires_at) - Date.now()).toBeLessThanOrEqual(60_000);
  await node.relay.store.db
    .update(shares)
    .set({ expiresAt: new Date(Date.now() - 1) })
    .where(eq(shares.id, timed.id));
  expect(await statusesOf(timed.id)).toEqual(all(410));
  // A later link does not open the address that was given for a time.
  const next = await shared(id);
  expect(next.id).not.toBe(timed.id);
  expect(await statusesOf(timed.id)).toEqual(all(410));

  const end = new Date(Date.now() + 3_600_000);
  await change(id, { outputExpiresAt: end });
  expect((await shared(id, { expires_in_seconds: 86_400 })).expires_at).toBe(end.toISOString());
  await change(id, { outputExpiresAt: new Date(Date.now() - 1) });
  expect(await statusesOf(next.id)).toEqual(all(410));
  expect(await send('POST', id, {})).toMatchObject({ status: 409, error_code: 'NOTHING_TO_SHARE' });

  const other = await completed();
  const link = await shared(other);
  await node.api('/api/v3/predictions/delete', { ids: [other] });
  expect(await statusesOf(link.id)).toEqual(all(410));
});

test('only the owner shares and revokes, and only a video that there is', async () => {
  const id = await completed();
  const link = await shared(id);
  for (const method of ['POST', 'DELETE']) {
    const body = method === 'POST' ? { include: { prompt: true } } : undefined;
    const answer = await send(method, id, body, otherKey);
    expect(answer).toMatchObject({ status: 404, error_code: 'NOT_FOUND' });
  }
  expect((await read(`/s/${link.id}`)).text).not.toContain('boat');
  const waiting = await node.api('/api/v3/kinora/wan-2.2/i2v-720p-lora', {
    image: `data:image/png;base64,${node.image.toString('base64')}`,
    prompt,
  });
  const waitingId = waiting.body.data?.id ?? '';
  expect(await send('POST', waitingId, {})).toMatchObject({
    status: 409,
    error_code: 'NOTHING_TO_SHARE',
  });
  await node.api(`/api/v3/predictions/${waitingId}/cancel`, {});
  expect(await send('POST', id, { expires_in_seconds: 1 })).toMatchObject({ status: 400 });
});

test('a flagged video is covered, and other sites show nothing of it', async () => {
  const id = await completed();
  const safetyRecord = safetySchema.parse({ status: 'flagged', score: 0.9, model: 'checker' });
  await change(id, { safety: 'flagged', safetyRecord });
  const link = await shared(id, { include: { image: true } });
  const { text } = await read(`/s/${link.id}`);
  expect(text).toMatch(/<details><summary>The safety check found[^<]*<\/summary><video/);
  expect(text).not.toContain('poster=');
  const tags = tagsOf(text);
  expect(tags).toMatchObject({ 'twitter:card': 'summary', rating: 'adult' });
  expect(Object.keys(tags)).not.toContain('og:video');
  expect(Object.keys(tags)).not.toContain('og:image');
});

test('the frame that a worker sends is what other sites show; of a flagged video none is kept', async () => {
  const pictures = { poster: jpeg };
  const link = await shared(await completed({}, { report: { pictures } }));
  const { text } = await read(`/s/${link.id}`);
  const picture = `${link.url}/poster`;
  expect(tagsOf(text)).toMatchObject({ 'og:image': picture, 'twitter:image': picture });
  expect(text).toContain(`poster="${link.id}/poster"`);
  const image = await node.get(`/s/${link.id}/poster`);
  expect(image.headers.get('content-type')).toBe('image/jpeg');
  expect(Buffer.from(await image.arrayBuffer()).equals(frame)).toBe(true);
  // It is kept as long as the video, and goes with its prediction.
  const filesOf = (id: string) => node.relay.files.rows.ofJob(id);
  const [job] = await node.relay.store.db
    .select()
    .from(jobs)
    .where(eq(jobs.id, link.prediction_id));
  const files = (await filesOf(link.prediction_id)).filter(({ filename }) =>
    /^p|4$/.test(filename),
  );
  expect(files.map(({ expiresAt }) => expiresAt)).toEqual(Array(2).fill(job?.outputExpiresAt));
  await node.api('/api/v3/predictions/delete', { ids: [link.prediction_id] });
  expect(await filesOf(link.prediction_id)).toEqual([]);

  const checker = { model: 'checker', sha256: 'c'.repeat(64), input: 0.1, frames: [0.9] };
  const safety = safetySchema.parse({ status: 'flagged', score: 0.9, ...checker });
  const asked = { enable_safety_checker: true };
  const flagged = await shared(await completed(asked, { report: { pictures, safety } }));
  expect(Object.keys(tagsOf((await read(`/s/${flagged.id}`)).text))).not.toContain('og:image');
  expect((await read(`/s/${flagged.id}/poster`)).status).toBe(404);
});

test('a signed-in page uploads a video of the studio, shares it, lists its links, and takes it back', async () => {
  const body = { token: node.signInToken };
  const signedIn = await node.send('POST', '/api/admin/session', { body });
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
  const page = { Cookie: cookie, Origin: node.origin };
  const bytes = await makeVideo({ title: 'of the studio' });
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const id = 'a1'.repeat(16);
  const address = `/api/admin/videos/${id}?sha256=${sha256}`;
  const put = (headers: Record<string, string> = page) =>
    node.get(address, { method: 'PUT', headers, body: bytes });
  const poster = await readFile(new URL('../../../public/samples/still.jpg', import.meta.url));
  const { width, height } = await sniffImage(poster);
  const video = {
    sha256,
    parameters: parseParameters({ prompt: 'A studio', seed: 5 }),
    profile: 'ultra-fast',
    model: 'mini',
    inference_ms: 10,
    safety: uncheckedSafety('off'),
    poster: poster.toString('base64'),
    share: { include: { prompt: true } },
  };
  const post = async (changed: object = {}) => {
    const sent = { headers: page, body: { ...video, ...changed } };
    const { status, json } = await node.send('POST', `/api/admin/videos/${id}/share`, sent);
    return { status, ...json };
  };

  expect((await put({})).status).toBe(401);
  expect((await put({ ...page, Origin: 'https://other.example' })).status).toBe(403);
  expect((await put({ ...page, 'Sec-Fetch-Site': 'same-site' })).status).toBe(403);
  expect(await post()).toMatchObject({ status: 409, error_code: 'CONFLICT' });
  const isThere = async () =>
    (await node.get(address, { method: 'HEAD', headers: page })).headers.get('upload-complete');
  expect(await isThere()).toBe('?0');
  expect((await put()).status).toBe(200);
  expect(await isThere()).toBe('?1');
  expect(await post({ poster: Buffer.from('no picture').toString('base64') })).toMatchObject({
    status: 400,
    error_code: 'INVALID_PARAMETER',
  });
  const link = await post();
  expect(link).toMatchObject({ status: 200, data: { prediction_id: id } });
  // The same once more, as after a lost answer.
  expect((await post()).data.url).toBe(link.data.url);
  const shown = await read(`/s/${link.data.id}`);
  expect(shown.text).toContain('<h1>A studio</h1>');
  const sent = await node.get(`/s/${link.data.id}/video.mp4`);
  expect(Buffer.from(await sent.arrayBuffer()).equals(bytes)).toBe(true);
  // Its poster is the picture that other sites show.
  const picture = `${link.data.url}/poster`;
  expect(tagsOf(shown.text)).toMatchObject({ 'og:image': picture, 'twitter:image': picture });
  expect(shown.text).toContain(`poster="${link.data.id}/poster"`);
  const image = await node.get(`/s/${link.data.id}/poster`);
  expect(image.headers.get('content-type')).toBe('image/jpeg');
  expect(Buffer.from(await image.arrayBuffer()).equals(poster)).toBe(true);
  const thumbnailOf = async (query = '') => {
    const answer = await read(`/oembed?url=${encodeURIComponent(link.data.url)}${query}`);
    const { thumbnail_url, thumbnail_width, thumbnail_height } = JSON.parse(answer.text);
    return [thumbnail_url, thumbnail_width, thumbnail_height];
  };
  expect(await thumbnailOf()).toEqual([picture, width, height]);
  expect(await thumbnailOf(`&maxwidth=${width - 1}`)).toEqual([undefined, undefined, undefined]);
  // It is a result of its owner, with the retention of results.
  const result = await node.api(`/api/v3/predictions/${id}`);
  expect(result.body.data).toMatchObject({ status: 'completed', outputs: [expect.any(String)] });
  const days = (Date.parse(link.data.expires_at) - Date.now()) / 86_400_000;
  expect(days).toBeGreaterThan(6.9);
  expect(days).toBeLessThan(7.1);

  const other = { Authorization: `Bearer ${otherKey}` };
  const list = async (headers: Record<string, string>) => {
    const { json } = await node.send('GET', '/api/admin/shares', { headers });
    return endpoints.listShares.answer.parse(json).data.shares;
  };
  const api = await shared(await completed(), { include: { settings: true } });
  const ended = await shared(await completed());
  await send('DELETE', ended.prediction_id);
  const [newest, before] = await list(page);
  expect(newest).toEqual({ ...api, title: prompt, uploaded: false });
  expect(before).toEqual({ ...link.data, title: 'A studio', uploaded: true });
  expect((await list(page)).map((each) => each.id)).not.toContain(ended.id);
  expect(await list(other)).toEqual([]);
  const revoke = async ({ id }: Share, headers: Record<string, string> = page) => {
    const { status, json } = await node.send('DELETE', `/api/admin/shares/${id}`, { headers });
    return [status, json.data];
  };
  expect(await revoke(api, other)).toEqual([404, undefined]);
  expect(await revoke(api)).toEqual([200, { revoked: true }]);
  expect(await revoke(api)).toEqual([200, { revoked: false }]);
  expect(await statusesOf(api.id)).toEqual(all(410));
  // Its video is a result of the API, and stays.
  expect((await node.api(`/api/v3/predictions/${api.prediction_id}`)).status).toBe(200);

  const remove = (headers: Record<string, string>) =>
    node.get(`/api/admin/videos/${id}/share`, { method: 'DELETE', headers });
  expect((await remove(other)).status).toBe(404);
  expect((await remove(page)).status).toBe(200);
  expect(await statusesOf(link.data.id)).toEqual(all(410));

  // By its link it is taken back too, and nothing of it stays.
  expect((await put()).status).toBe(200);
  // There is no picture of one that is flagged.
  const flagged = safetySchema.parse({ status: 'flagged', score: 0.9, model: 'checker' });
  const covered = await post({ safety: flagged });
  expect(tagsOf((await read(`/s/${covered.data.id}`)).text)['og:image']).toBeUndefined();
  expect((await read(`/s/${covered.data.id}/poster`)).status).toBe(404);
  const [hidden] = await node.relay.store.db.select().from(jobs).where(eq(jobs.id, id));
  expect(hidden?.safety).toBe('flagged');
  expect(await revoke((await post()).data)).toEqual([200, { revoked: true }]);
  expect((await node.api(`/api/v3/predictions/${id}`)).status).toBe(404);
});
