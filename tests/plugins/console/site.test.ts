/** What stands between the gateway and the console's API: files, headers, origins, bounds. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Answer } from '../../../core/contract/message.ts';
import { originOf } from '../../../plugins/common/kit/pages/origin.ts';
import { brandOf, mailFoot } from '../../../plugins/console/brand/brand.ts';
import { brand } from '../../../plugins/console/brand/config.ts';
import { contrast, paletteOf } from '../../../plugins/console/brand/palette.ts';
import { Files } from '../../../plugins/console/files.ts';
import { isOrigin } from '../../../plugins/console/origin.ts';
import { createSite, refuseLarge } from '../../../plugins/console/site.ts';
import { fakeExchange } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { fakeConsole, plainBrand } from './fake-console.ts';

const folder = mkdtempSync(join(tmpdir(), 'pages-'));
after(() => rmSync(folder, { recursive: true, force: true }));
mkdirSync(join(folder, 'dist/assets'), { recursive: true });
writeFileSync(join(folder, 'secret.txt'), 'not for the web');
writeFileSync(
  join(folder, 'dist/index.html'),
  '<meta name="csp-nonce" content="__CSP_NONCE__"><link rel="icon" href="x"></head><div id="root">',
);
writeFileSync(join(folder, 'dist/mark.svg'), '<svg/>');
writeFileSync(join(folder, 'dist/assets/app-1a2b.js'), 'plain');
writeFileSync(join(folder, 'dist/assets/app-1a2b.js.br'), 'brotli');
writeFileSync(join(folder, 'dist/assets/app-1a2b.js.gz'), 'gzip');

const nowhere = () => assert.fail('nothing is sent to an upstream');

function siteOf(origin = '', pages = 'dist/') {
  const services = fakeConsole({ role: 'operator' });
  const files = new Files({
    folder: pathToFileURL(join(folder, pages)),
    mediaOrigins: ['https://files.example'],
    brand: plainBrand,
    clock: services.clock,
    random: services.host.random,
  });
  const site = createSite({ services, signIn: async () => new Response('sign-in'), files, origin });
  return (path: string, request: object = {}) =>
    site(
      fakeExchange({
        request: { method: 'GET', path, headers: { host: 'gateway.test:8080' }, ...request },
      }),
      nowhere,
    );
}
const bodyOf = async ({ body }: Answer): Promise<string> => {
  if (typeof body === 'string') return body;
  if (body instanceof Uint8Array) return Buffer.from(body).toString();
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
};

test('every address without a dot serves the one page, with its own nonce in policy and text', async () => {
  const site = siteOf();
  const seen = new Set<string>();
  for (const path of ['/console/', '/console/keys', '/console/admin/accounts/1', '/console/first']) {
    const answer = await site(path);
    assert.equal(answer.status, 200);
    const nonce = /'nonce-([\w-]{22})'/.exec(answer.headers['content-security-policy']!)![1]!;
    assert.ok((await bodyOf(answer)).includes(`content="${nonce}"`));
    assert.equal(answer.headers['cache-control'], 'no-store');
    seen.add(nonce);
  }
  assert.equal(seen.size, 4);
});

test('the policy allows only our own scripts and styles, and pictures from the origins of results', async () => {
  const policy = (await siteOf()('/console/')).headers['content-security-policy']!;
  const directives = Object.fromEntries(
    policy.split('; ').map((line) => [line.split(' ')[0]!, line.split(' ').slice(1).join(' ')]),
  );
  assert.equal(directives['default-src'], "'none'");
  assert.equal(directives['script-src'], "'self'");
  assert.equal(directives['connect-src'], "'self'");
  assert.equal(directives['frame-ancestors'], "'none'");
  assert.equal(directives['img-src'], "'self' data: blob: https://files.example");
  assert.equal(policy.includes('unsafe'), false);
});

test('assets are cacheable for good, and compressed as the browser can read them', async () => {
  const site = siteOf();
  const requestOf = (encoding: string) =>
    site('/console/assets/app-1a2b.js', { headers: { host: 'a', 'accept-encoding': encoding } });
  for (const [encoding, body, reply] of [
    ['gzip, deflate, br', 'brotli', 'br'],
    ['gzip', 'gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip', 'gzip'],
    ['identity', 'plain', undefined],
  ] as const) {
    const answer = await requestOf(encoding);
    assert.deepEqual([await bodyOf(answer), answer.headers['content-encoding']], [body, reply]);
    assert.equal(answer.headers['content-type'], 'text/javascript; charset=utf-8');
    assert.match(answer.headers['cache-control']!, /immutable/);
    assert.equal(answer.headers['vary'], 'accept-encoding');
  }
  assert.equal((await site('/console/mark.svg')).headers['cache-control'], 'public, max-age=300');
  assert.equal(await bodyOf(await site('/console/assets/app-1a2b.js', { method: 'HEAD' })), '');
});

test('no path leaves the folder or bypasses the table of roles', async () => {
  const site = siteOf();
  for (const path of [
    '/console/../secret.txt',
    '/console/assets/../../secret.txt',
    '/console/%2e%2e/secret.txt',
    '/console/..%2fsecret.txt',
    '/console/assets\\..\\..\\secret.txt',
    '/console/api/info/../admin/people',
    '/console/api/%2e%2e/api/admin/people',
    '/console/api//admin/people',
    '/console/secret.txt',
    '/console/index.html',
    '/console/assets/app-1a2b.js.map',
  ]) {
    const answer = await site(path);
    assert.equal(answer.status, 404, path);
    assert.equal((await bodyOf(answer)).includes('not for the web'), false);
  }
});

test('pages that are not built are answered with the build command', async () => {
  const answer = await siteOf('', 'nowhere/')('/console/');
  assert.equal(answer.status, 503);
  assert.match(await bodyOf(answer), /npm/);
});

test('every answer has the security headers', async () => {
  const site = siteOf('https://gateway.example');
  for (const path of [
    '/console/',
    '/console/api/me',
    '/console/api/nothing',
    '/console/mark.svg',
    '/console/api/auth/x',
  ]) {
    const { headers } = await site(path);
    assert.equal(headers['x-content-type-options'], 'nosniff', path);
    assert.equal(headers['x-frame-options'], 'DENY', path);
    assert.match(headers['content-security-policy']!, /frame-ancestors 'none'/, path);
    assert.equal(headers['referrer-policy'], 'same-origin', path);
    assert.match(headers['strict-transport-security']!, /max-age/, path);
  }
  assert.equal((await siteOf()('/console/')).headers['strict-transport-security'], undefined);
});

test('/console redirects to /console/', async () => {
  const answer = await siteOf()('/console');
  assert.deepEqual([answer.status, answer.headers['location']], [308, '/console/']);
});

test("the API gets the connection's address, whatever the client claims", async () => {
  const services = fakeConsole({ role: 'operator' });
  const files = new Files({
    folder: pathToFileURL(folder),
    mediaOrigins: [],
    brand: plainBrand,
    clock: services.clock,
    random: services.host.random,
  });
  let seen: Headers | undefined;
  const signIn = async (request: Request) => {
    seen = request.headers;
    return new Response();
  };
  const site = createSite({ services, signIn, files, origin: '' });
  await site(
    fakeExchange({
      request: {
        path: '/console/api/auth/sign-in/email',
        headers: { host: 'gateway.test', 'x-console-address': '203.0.113.99', 'x-forwarded-for': '203.0.113.98' },
        remoteAddress: '198.51.100.4',
      },
    }),
    nowhere,
  );
  assert.equal(seen?.get('x-console-address'), '198.51.100.4');
});

test('large bodies, and bodies without a length, are refused before they are read', () => {
  const requestOf = (path: string, headers: Record<string, string>) =>
    refuseLarge(fakeExchange({ request: { path, headers } }))?.status;
  assert.equal(requestOf('/console/api/keys', { 'content-length': '65536' }), undefined);
  assert.equal(requestOf('/console/api/keys', { 'content-length': '65537' }), 413);
  assert.equal(requestOf('/console/api/keys', { 'transfer-encoding': 'chunked' }), 413);
  assert.equal(requestOf('/console/api/admin/config/save', { 'content-length': '1000000' }), undefined);
  assert.equal(requestOf('/console/api/admin/config/save', { 'content-length': '3000000' }), 413);
});

test('an origin is scheme and host, from the configuration before the Host header', () => {
  assert.equal(originOf('https://gateway.example', 'evil.example'), 'https://gateway.example');
  assert.equal(originOf('', 'Gateway.test:8080'), 'http://gateway.test:8080');
  assert.equal(originOf('', '[::1]:8080'), 'http://[::1]:8080');
  for (const host of [undefined, '', 'a b', 'evil.example/path', 'user@host', 'host#x', '-x.example', 'a:99999999'])
    assert.throws(() => originOf('', host), /Host/, String(host));
  assert.equal(isOrigin('https://gateway.example'), true);
  for (const text of ['https://gateway.example/', 'gateway.example', 'ftp://gateway.example', 'https://a@b.example'])
    assert.equal(isOrigin(text), false, text);
});

test('a brand has its pictures at addresses of their own, its colour in the page, its links for all, and a foot of mails', async () => {
  const logo = '<svg xmlns="http://www.w3.org/2000/svg"><script>x()</script></svg>';
  const own = brandOf(
    brand.parse({
      logo,
      favicon: 'https://cdn.example/i.png',
      accent: '#ffcc00',
      terms: '# Terms',
      imprint: 'https://shop.example/i',
    }),
  );
  const services = fakeConsole({ role: undefined });
  const settings = { ...services.settings, brand: own };
  const files = new Files({
    folder: pathToFileURL(join(folder, 'dist/')),
    mediaOrigins: [],
    brand: own,
    clock: services.clock,
    random: services.host.random,
  });
  const site = createSite({
    services: { ...services, settings },
    signIn: async () => new Response(),
    files,
    origin: '',
  });
  const get = (path: string) =>
    site(fakeExchange({ request: { method: 'GET', path, headers: { host: 'gateway.test:8080' } } }), nowhere);
  const picture = await get(own.logo!.split('?')[0]!);
  assert.equal(String(picture.body), logo);
  assert.equal(picture.headers['content-type'], 'image/svg+xml');
  assert.match(String(picture.headers['content-security-policy']), /^default-src 'none';.*sandbox$/);
  const page = await get('/console/');
  const nonce = /'nonce-([\w-]+)'/.exec(String(page.headers['content-security-policy']))![1];
  assert.ok(String(page.body).includes(`<style nonce="${nonce}">${own.css}</style></head>`));
  assert.match(String(page.headers['content-security-policy']), /img-src [^;]*https:\/\/cdn\.example/);
  const json = async (path: string) =>
    JSON.parse(Buffer.from((await get(path)).body as Uint8Array).toString()) as { brand?: object };
  const info = await json('/console/api/info');
  const links = { terms: '/console/legal/terms', imprint: 'https://shop.example/i', docs: null };
  assert.deepEqual(info.brand, { logo: own.logo, ...links });
  assert.deepEqual(await json('/console/api/public/legal/terms'), { markdown: '# Terms' });
  assert.equal((await get('/console/api/public/legal/imprint')).status, 404);
  assert.equal(
    mailFoot('Shop', 'https://gw.example', own),
    '\n-- \nShop\nhttps://gw.example\nhttps://gw.example/console/legal/terms\nhttps://shop.example/i\n',
  );
  for (const wrong of ['javascript:alert(1)', 'data:text/html;base64,AAAA', 'logo.svg'])
    assert.equal(brand.safeParse({ logo: wrong }).success, false, wrong);
});

test('words on every accent and in it can be read, in light and in dark', () => {
  const hex = fc.integer({ min: 0, max: 0xffffff }).map((number) => `#${number.toString(16).padStart(6, '0')}`);
  fc.assert(
    fc.property(hex, (accent) => {
      const shades = paletteOf(accent);
      assert.equal(shades.length, 10);
      for (const filled of [6, 7]) assert.ok(contrast(shades[filled]!, '#ffffff') >= 4.5, `${accent} ${filled}`);
      for (const link of [2, 3, 4]) assert.ok(contrast(shades[link]!, '#1e2330') >= 4.5, `${accent} ${link}`);
    }),
  );
});
