/** Every sink against names that would forge lines, headers, mentions or links, or fill a message: each arrives as plain text. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { z } from '../../../core/contract/schema.ts';
import { messageOf, plainFacts } from '../../../plugins/alerts/message.ts';
import { chatSinks } from '../../../plugins/alerts/sinks/chats.ts';
import { mailSink, webhookSink } from '../../../plugins/alerts/sinks/mail-and-webhook.ts';
import type { AlertMessage } from '../../../plugins/common/domain/admin/alerts.ts';
import { type Mailer, openMailer } from '../../../plugins/console/people/mail.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { smtpSink } from '../../helpers/smtp-sink.ts';

const hostile: Readonly<Record<string, string>> = {
  'line breaks': 'm\nValue: 0\rRule: none\u2028Id: forged\u2029\u0085end',
  'headers of a mail': 'm\r\nBcc: victim@evil.example\r\nContent-Type: text/html\r\n\r\n<b>hello</b>',
  'the end of a mail': 'm\r\n.\r\nMAIL FROM:<a@evil.example>\r\n',
  Markdown: '**b** _i_ ~~s~~ `c` ||s|| [text](https://evil.example) ![i](https://evil.example/i.png) # h',
  'mentions of all':
    '@everyone @here <!channel> <!here> <!everyone> <@U012AB3CD> <#C1|x> <at user_id="all">all</at> <at id=all></at>',
  'a link of Slack': '<http://evil.example|the console> <mailto:a@evil.example|b>',
  HTML: '<script>alert(1)</script><img src=x onerror=alert(1)> &lt;b&gt; &amp;',
  'marks of direction': 'a\u202Egpj.exe\u2066b\u2069\u200F\u061C\u200E',
  'what is invisible': 'a\u200B\u00AD\u2060\uFEFF\u3164\u115F\uFE0F\u{E0041}b',
  'control characters': 'a\u0000\u0007\u001B[31mred\u001B[0m\u007F\u009Bb',
  'halves of a pair': 'a\uD83D b\uDE00 c\uD83D',
  'ten kilobytes': '<&@`*'.repeat(2_000),
  'ten kilobytes of long characters': '😀'.repeat(2_560),
  JSON: '","admin":true,"x":"\\u0000\\',
};

const posted: string[] = [];
const mails: string[] = [];
const hook = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    posted.push(Buffer.concat(chunks).toString());
    response.end('{"code":0,"errcode":0}');
  });
});
const smtp = smtpSink(mails);
let mailer: Mailer;
const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port;
before(async () => {
  for (const server of [hook, smtp]) await once(server.listen(0, '127.0.0.1'), 'listening');
  const server = { host: '127.0.0.1', port: portOf(smtp), user: '', password: '', encryption: 'none' } as const;
  mailer = await openMailer({ ...server, from: 'gateway@example.test' }, fakeHost().log);
});
after(async () => {
  await mailer.close();
  for (const server of [hook, smtp]) server.close();
});

function messageAbout(name: string): AlertMessage {
  const facts = plainFacts({ subject: name, fields: { provider: name, model: name, account: name, key: name } });
  return messageOf({
    ...{ id: 'a1', event: 'begin', gateway: name, rule: 'usage_implausible', kind: 'usage_implausible' },
    ...{ kindTitle: 'A vendor reports too much', value: 3, threshold: 0, unit: 'count', beganAt: 0, at: 0, ...facts },
  });
}

/** What arrives at the service. */
async function sent(sink: string, name: string): Promise<string> {
  const type = [...chatSinks, mailSink, webhookSink].find((one) => one.name === sink)!;
  const url = `http://127.0.0.1:${portOf(hook)}/hook`;
  const configs: Record<string, object> = {
    mail: { to: ['ops@example.test'] },
    webhook: { url, secret: 'a secret of the webhook', allow_private: true },
  };
  const config = (type.config as unknown as z.ZodType).parse(configs[sink] ?? { webhook: url, allow_private: true });
  const tools = { ...fakeHost(), mailer: () => ({ send: (mail: never) => mailer.deliver(mail) }) };
  const opened = type.open(config as never, tools);
  posted.length = 0;
  mails.length = 0;
  try {
    await opened.send(messageAbout(name), AbortSignal.timeout(5_000));
  } finally {
    await opened.close?.();
  }
  assert.equal(posted.length + mails.length, 1);
  return posted[0] ?? mails[0]!;
}

/** The lines that the gateway writes, and no other. */
function assertLines(text: string, first: RegExp): void {
  const lines = text.split('\n');
  assert.match(lines[0]!, first);
  const names = lines.slice(2).map((line) => line.replaceAll('\\', '').split(':')[0]);
  const all = ['Value', 'provider', 'model', 'account', 'key', 'Since', 'Rule', 'Id'];
  assert.deepEqual(names, all.slice(0, names.length));
  assert.ok(names.length === all.length || text.endsWith('…'), text);
  assert.doesNotMatch(text.replaceAll('\n', ''), /[\p{C}\p{DI}\p{Zl}\p{Zp}]/u);
  assert.ok(text.isWellFormed());
}

const title = /^\\?\[/;
const checks: Readonly<Record<string, (got: string) => void>> = {
  slack(got) {
    const body = JSON.parse(got);
    const { type, text, verbatim } = body.blocks[0].text;
    assert.deepEqual([type, verbatim, body.unfurl_links, body.unfurl_media], ['mrkdwn', true, false, false]);
    assert.equal(body.text, text);
    assert.ok(text.length <= 3_000, `${text.length} characters`);
    assert.doesNotMatch(text, /[<>]|&(?!amp;|lt;|gt;)/);
    assertLines(text, title);
  },
  discord(got) {
    const { content, allowed_mentions: mentions } = JSON.parse(got);
    assert.deepEqual(mentions, { parse: [] });
    assert.ok(content.length <= 2_000, `${content.length} characters`);
    assert.doesNotMatch(content.replaceAll(/\\./gs, ''), /[\\*_~`|>#[\]()<:@-]/);
    assertLines(content, title);
  },
  feishu(got) {
    const { msg_type: type, content } = JSON.parse(got);
    assert.equal(type, 'text');
    assertTextOnly(content.text);
  },
  dingtalk(got) {
    const { msgtype, text, at } = JSON.parse(got);
    assert.deepEqual([msgtype, at], ['text', { isAtAll: false }]);
    assertTextOnly(text.content);
  },
  webhook(got) {
    const body = JSON.parse(got);
    assert.equal(body.admin, undefined);
    assert.ok(got.length < 8_000, `${got.length} characters`);
    for (const name of [body.subject, ...Object.values<string>(body.fields)]) assert.ok([...name].length <= 120);
    assertLines(`${body.title}\n${body.text}`, title);
  },
  mail(got) {
    const [head, ...parts] = got.split('\r\n\r\n');
    const names = head!
      .replaceAll(/\r\n[ \t]+/g, ' ')
      .split('\r\n')
      .map((line) => line.split(':')[0]!.toLowerCase());
    const usual = [
      'from',
      'to',
      'subject',
      'message-id',
      'date',
      'mime-version',
      'content-type',
      'content-transfer-encoding',
    ];
    assert.deepEqual(names.toSorted(), usual.toSorted());
    assert.match(head!, /^Content-Type: text\/plain/m);
    assert.match(head!, /^To: ops@example\.test$/m);
    assert.ok(head!.split('\r\n').every((line) => line.length <= 998 && /^[\t\x20-\x7e]*$/.test(line)));
    assert.equal(parts.length, 1);
    assert.ok(got.length < 16_000, `${got.length} characters`);
  },
};

function assertTextOnly(text: string): void {
  assert.ok(Buffer.byteLength(text) <= 18_000, `${Buffer.byteLength(text)} bytes`);
  assert.doesNotMatch(text, /[<>@]|\]\(|:\/\//);
  assertLines(text, title);
}

for (const [sink, check] of Object.entries(checks)) {
  test(`${sink}: hostile names arrive as plain text in a form that the service accepts`, async (context) => {
    for (const [kind, text] of Object.entries(hostile))
      await context.test(kind, async () => check(await sent(sink, text)));
  });
}

test('each type of sink is in the table', () => {
  const types = [...chatSinks, mailSink, webhookSink].map(({ name }) => name);
  assert.deepEqual(Object.keys(checks).toSorted(), types.toSorted());
});
