/** Alerts by mail, with the mail server of the console, and as signed JSON (https://www.standardwebhooks.com). */
import { createHmac } from 'node:crypto';
import { z } from '../../../core/contract/schema.ts';
import type { AlertMessage, AlertSinkType } from '../../common/domain/admin/alerts.ts';
import { Refused } from '../deliveries.ts';
import { address, allowPrivate, openPoster } from './post.ts';

const mailConfig = z.strictObject({ to: z.array(z.email()).min(1).max(20).describe('Addresses that get the mails.') });

export const mailSink: AlertSinkType<z.output<typeof mailConfig>> = {
  name: 'mail',
  config: mailConfig,
  open: ({ to }, { mailer }) => ({
    async send({ title, text }) {
      const found = mailer();
      if (found === undefined) throw new Refused('this gateway sends no mail: set console.smtp');
      await found.send({ to: to.join(', '), subject: title, text: `${text}\n` });
    },
  }),
};

const webhookConfig = z.strictObject({
  url: address.describe('Address that gets each message by POST.'),
  secret: z
    .string()
    .min(16)
    .describe(
      'Signs each message: `webhook-signature` is v1 and HMAC-SHA256 of id, timestamp and body, joined by dots.',
    ),
  allow_private: allowPrivate,
});

export const webhookSink: AlertSinkType<z.output<typeof webhookConfig>> = {
  name: 'webhook',
  config: webhookConfig,
  open({ url, secret, allow_private: isPrivateAllowed }, { clock }) {
    const poster = openPoster(isPrivateAllowed);
    return {
      async send(message, signal) {
        const id = `${message.id}.${message.event}.${message.at}`;
        const timestamp = String(Math.floor(clock.now() / 1_000));
        const body = bodyOf(message);
        const signature = createHmac('sha256', secret)
          .update(`${id}.${timestamp}.${JSON.stringify(body)}`)
          .digest('base64');
        const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
        await poster.post(url, body, headers, signal);
      },
      close: () => poster.close(),
    };
  },
};

function bodyOf({ beganAt, at, ...message }: AlertMessage) {
  return {
    type: `alert.${message.event}`,
    ...message,
    began_at: new Date(beganAt).toISOString(),
    at: new Date(at).toISOString(),
  };
}
