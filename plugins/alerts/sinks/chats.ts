/** Alerts in the chats that teams use: each service's own form, in which a name cannot call people or place links. */
import { createHmac } from 'node:crypto';
import { secretText, z } from '../../../core/contract/schema.ts';
import type { AlertMessage, AlertSinkType } from '../../common/domain/admin/alerts.ts';
import { post, Refused } from '../../common/kit/fetch/post.ts';
import { address, allowPrivate } from './addresses.ts';

const config = z.strictObject({
  webhook: address.describe(
    'Address of the service for messages; a secret, since anyone with it can post. Copy it from the chat program.',
  ),
  secret: secretText()
    .default('')
    .describe('Signs each message. Set it where the service has given one out (Feishu, DingTalk).'),
  allow_private: allowPrivate,
});

interface Request {
  readonly url: string;
  readonly body: object;
}
interface Chat {
  readonly name: string;
  request(text: string, settings: { readonly webhook: string; readonly secret: string }, now: number): Request;
  /** For services that refuse with 200: the fault in the body; undefined: it was taken. */
  refusal?(answer: string): string | undefined;
}

const hmac = (key: string, data: string) => createHmac('sha256', key).update(data).digest('base64');

/** Escapes each character, and ends between two of them where the service takes no more. */
function escapedWithin(text: string, most: number, write: (character: string) => string): string {
  let escaped = '';
  for (const character of text) {
    const next = write(character);
    if (escaped.length + next.length >= most) return `${escaped}…`;
    escaped += next;
  }
  return escaped;
}

const entities = new Map(Object.entries({ '&': '&amp;', '<': '&lt;', '>': '&gt;' }));

/**
 * https://docs.slack.dev/messaging/formatting-message-text: these three are the whole escape; `verbatim` makes no links of names. A
 * section takes 3000 characters.
 */
const slack: Chat = {
  name: 'slack',
  request(text, { webhook }) {
    const escaped = escapedWithin(text, 3_000, (character) => entities.get(character) ?? character);
    const block = { type: 'section', text: { type: 'mrkdwn', text: escaped, verbatim: true } };
    return { url: webhook, body: { text: escaped, blocks: [block], unfurl_links: false, unfurl_media: false } };
  },
};

const markdown = /[\\*_~`|>#[\]()<:@-]/;

/** `allowed_mentions` without any: no name calls people. Marks of Markdown are escaped, also those of links. */
const discord: Chat = {
  name: 'discord',
  request(text, { webhook }) {
    const content = escapedWithin(text, 2_000, (character) =>
      markdown.test(character) ? `\\${character}` : character,
    );
    return { url: webhook, body: { content, allowed_mentions: { parse: [] } } };
  },
};

/** Without an escape: `<at user_id="all">` in a text would mention people, and `[text](address)` and addresses would be links. */
const feishu: Chat = {
  name: 'feishu',
  request(text, { webhook, secret }, now) {
    const timestamp = String(Math.floor(now / 1_000));
    const signed = secret === '' ? {} : { timestamp, sign: hmac(`${timestamp}\n${secret}`, '') };
    return { url: webhook, body: { ...signed, msg_type: 'text', content: { text: fullWidth(text) } } };
  },
  refusal: (answer) => refusalOf(answer, 'code'),
};

const dingtalk: Chat = {
  name: 'dingtalk',
  request(text, { webhook, secret }, now) {
    const url = new URL(webhook);
    if (secret !== '') {
      url.searchParams.set('timestamp', String(now));
      url.searchParams.set('sign', hmac(secret, `${now}\n${secret}`));
    }
    const body = { msgtype: 'text', text: { content: fullWidth(text) }, at: { isAtAll: false } };
    return { url: url.href, body };
  },
  refusal: (answer) => refusalOf(answer, 'errcode'),
};

/** Both services take 20 kB, also of the longest characters. */
const fullWidth = (text: string) =>
  escapedWithin(
    text.replaceAll('://', '：//').replaceAll('](', '］('),
    4_000,
    (character) => wide.get(character) ?? character,
  );

const wide = new Map(Object.entries({ '<': '＜', '>': '＞', '@': '＠' }));

function refusalOf(answer: string, member: 'code' | 'errcode'): string | undefined {
  let code: unknown;
  try {
    code = (JSON.parse(answer) as Record<string, unknown> | null)?.[member];
  } catch {
    return 'its answer is no JSON';
  }
  if (code === 0) return undefined;
  return typeof code === 'number'
    ? `it refused the message (${member} ${code})`
    : 'it did not say that it took the message';
}

const textOf = ({ title, text }: AlertMessage) => `${title}\n${text}`;

export const chatSinks: readonly AlertSinkType<z.output<typeof config>>[] = [slack, discord, feishu, dingtalk].map(
  (chat) => ({
    name: chat.name,
    config,
    open: ({ allow_private: isPrivateAllowed, ...settings }, { clock, fetch }) => ({
      async send(message, signal) {
        const request = chat.request(textOf(message), settings, clock.now());
        const answer = await post(fetch, { ...request, signal, allowPrivate: isPrivateAllowed });
        const refusal = chat.refusal?.(answer);
        if (refusal !== undefined) throw new Refused(refusal);
      },
    }),
  }),
);
