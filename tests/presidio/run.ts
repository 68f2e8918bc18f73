/**
 * `npm run test:presidio`: personal data of requests masked by Presidio's own analyzer, and put back in the answers.
 * Exit 1: a test failed. Exit 77: Python or Presidio could not be had, nothing was tested.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import {
  chatAnswer,
  chatStream,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../plugins/common/author/testing.ts';
import { pythonWith } from '../helpers/python.ts';

const here = import.meta.dirname;

/** Each text with its parts that are personal data: signs before and between them are one character and two units, or several characters. */
const texts: Readonly<
  Record<'en' | 'es' | 'de', { readonly text: string; readonly parts: Readonly<Record<string, string>> }>
> = {
  en: {
    text: '😀𝒳 My card is 4111 1111 1111 1111, 👩‍👩‍👧 write to ada@example.com 🇬🇧 from GB82WEST12345698765432; my phone number is (425) 882-9026 𠮷.',
    parts: {
      CREDIT_CARD: '4111 1111 1111 1111',
      EMAIL_ADDRESS: 'ada@example.com',
      IBAN_CODE: 'GB82WEST12345698765432',
      PHONE_NUMBER: '(425) 882-9026',
    },
  },
  es: {
    text: '¡Hola 😀! Mi tarjeta es 5555 5555 5555 4444 𝒳, mi correo inés@ejemplo.es 👩‍👩‍👧, mi cuenta ES9121000418450200051332 y mi teléfono +34 912 34 56 78 𠮷.',
    parts: {
      CREDIT_CARD: '5555 5555 5555 4444',
      EMAIL_ADDRESS: 'inés@ejemplo.es',
      IBAN_CODE: 'ES9121000418450200051332',
      PHONE_NUMBER: '+34 912 34 56 78',
    },
  },
  de: {
    text: 'Grüße 😀𝒳: jürgen@beispiel.de 👩‍👩‍👧, Konto DE89370400440532013000 𠮷, Telefon +49 30 901820 🇩🇪.',
    parts: {
      EMAIL_ADDRESS: 'jürgen@beispiel.de',
      IBAN_CODE: 'DE89370400440532013000',
      PHONE_NUMBER: '+49 30 901820',
    },
  },
};

const python = await pythonWith(join(here, 'requirements.txt')).catch((error: Error) => {
  console.error(`Presidio cannot be installed: ${error.message.slice(0, 500)}\nNothing was tested.`);
});
if (python === undefined) process.exitCode = 77;
else registerTests(python);

function registerTests(interpreter: string): void {
  let presidio: { readonly origin: string; stop(): void };
  let vendor: Vendor;
  let gateway: TestGateway;

  before(async () => {
    presidio = await startPresidio(interpreter);
    vendor = await startVendor();
    gateway = await startGateway(settings(presidio.origin, vendor.origin));
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.stop();
    presidio?.stop();
  });

  const ask = (model: string, content: string, more: object = {}) =>
    gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content }], ...more });
  const sent = (): string => JSON.parse(vendor.requests.at(-1)!.body.toString()).messages[0].content;

  for (const [language, { text, parts }] of Object.entries(texts)) {
    const masked = Object.entries(parts).reduce((rest, [kind, part]) => rest.replace(part, `[${kind}-1]`), text);

    test(`${language}: exactly the personal data of a text are masked, and come back in a whole answer`, async () => {
      vendor.play(chatAnswer(`😀 ${masked}`));
      const answer = await ask(language, text);
      assert.equal(answer.status, 200, await answer.clone().text());
      assert.equal(sent(), masked);
      assert.equal(answer.headers.get('x-gateway-guardrails'), `${language}=masked(${Object.keys(parts).length})`);
      const body = (await answer.json()) as { choices: [{ message: { content: string } }] };
      assert.equal(body.choices[0].message.content, `😀 ${text}`);
    });

    test(`${language}: they come back in a stream, wherever placeholders are cut`, async () => {
      vendor.play(chatStream(...masked.match(/[\s\S]{1,7}/gu)!));
      const answer = await (await ask(language, text, { stream: true })).text();
      const deltas = [...answer.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data!));
      assert.equal(deltas.map(({ choices }) => choices[0].delta.content ?? '').join(''), text);
    });

    test(`${language}: each of them is found in a text of 40,000 characters`, async () => {
      vendor.play(chatAnswer('Noted.'));
      const filler = 'palabra 😀 words 𝒳 Wörter\n'.repeat(800);
      const answer = await ask(language, `${filler}${text}\n${filler}${text}`);
      assert.equal(answer.status, 200, await answer.text());
      assert.equal(sent(), `${filler}${masked}\n${filler}${masked}`);
    });

    test(`${language}: a text without personal data leaves as it came`, async () => {
      vendor.play(chatAnswer('Noted.'));
      const answer = await ask(language, 'Good 😀 morning 𝒳, número Wörter 12.');
      assert.equal(answer.headers.get('x-gateway-guardrails'), `${language}=passed`);
      assert.equal(sent(), 'Good 😀 morning 𝒳, número Wörter 12.');
    });
  }

  test('a message with an empty text beside another one is judged', async () => {
    vendor.play(chatAnswer('Noted.'));
    const messages = [
      { role: 'system', content: '' },
      { role: 'user', content: 'Write to ada@example.com.' },
    ];
    const answer = await gateway.post('/v1/chat/completions', { model: 'en', messages });
    assert.equal(answer.status, 200, await answer.text());
    const { messages: got } = JSON.parse(vendor.requests.at(-1)!.body.toString());
    assert.equal(got.at(-1).content, 'Write to [EMAIL_ADDRESS-1].');
  });

  test('a language that it does not have makes the check broken: 503, and nothing is sent', async () => {
    const before = vendor.requests.length;
    const answer = await ask('fr', 'Bonjour.');
    assert.equal(answer.status, 503);
    assert.match(await answer.text(), /guardrail_unavailable/);
    assert.equal(vendor.requests.length, before);
  });
}

function settings(presidio: string, vendor: string): object {
  const languages = [...Object.keys(texts), 'fr'];
  const entities = ['CREDIT_CARD', 'EMAIL_ADDRESS', 'IBAN_CODE', 'PHONE_NUMBER', 'URL'];
  const check = (language: string) => ({
    type: 'presidio',
    url: presidio,
    allow_private: true,
    language,
    // URL overlaps with addresses of mails. German has no recognizer of cards; telephone numbers have a score of 0.4.
    ...(language === 'de' ? { entities: entities.slice(1) } : language === 'fr' ? {} : { entities }),
    score: 0.4,
    on: ['prompt'],
    do: 'mask',
    restore: true,
    within: '60s',
  });
  return {
    plugins: ['providers', 'models', 'guardrails', 'prompts', 'route', 'protocol-convert'],
    providers: { vendor: { keys: 'k', speaks: { chat: `${vendor}/v1` } } },
    models: Object.fromEntries(languages.map((name) => [name, { owned_by: 'x', targets: ['vendor'], price: 'free' }])),
    guardrails: {
      checks: Object.fromEntries(languages.map((language) => [language, check(language)])),
      policies: Object.fromEntries(languages.map((language) => [language, [language]])),
      apply: languages.map((language) => ({ policy: language, models: [language] })),
    },
  };
}

/** Other addresses are refused by a proxy that is not there: it would fetch a newer list of domains. */
async function startPresidio(interpreter: string): Promise<{ origin: string; stop(): void }> {
  const refused = 'http://127.0.0.1:9';
  const child = spawn(interpreter, [join(here, 'service.py')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HTTP_PROXY: refused, HTTPS_PROXY: refused, PYTHONDONTWRITEBYTECODE: '1' },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(-4_000);
  });
  const lines = createInterface({ input: child.stdout });
  const [port] = await Promise.race([
    once(lines, 'line') as Promise<[string]>,
    once(child, 'exit').then(() => Promise.reject(new Error(`Presidio does not start: ${said}`))),
  ]);
  return { origin: `http://127.0.0.1:${port}`, stop: () => child.kill() };
}
