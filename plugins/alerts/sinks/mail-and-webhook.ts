/** Alerts by mail, with the mail server of the console, and as signed JSON (https://www.standardwebhooks.com). */
import { z } from '../../../core/contract/schema.ts';
import { type AlertMessage, type AlertSinkType, mailers } from '../../common/domain/admin/alerts.ts';
import { post, Refused } from '../../common/kit/fetch/post.ts';
import { signedHeaders, webhookSecrets } from '../../common/kit/fetch/webhooks.ts';
import { address, allowPrivate } from './addresses.ts';

const mailConfig = z.strictObject({
  to: z
    .array(z.email())
    .min(1)
    .max(20)
    .describe('Addresses that get the mails. Write the addresses of those who should be called.'),
});

export const mailSink: AlertSinkType<z.output<typeof mailConfig>> = {
  name: 'mail',
  requires: mailers,
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
  url: address.describe('Address that gets each message by POST. Write the receiver of your own service.'),
  secret: webhookSecrets()
    .refine((secrets) => secrets.length > 0, 'must not be empty')
    .describe(
      'Signs each message: `whsec_` and base64, as receivers take it, or any other text; of a list, each signs. Give the receiver the same one.',
    ),
  allow_private: allowPrivate,
});

export const webhookSink: AlertSinkType<z.output<typeof webhookConfig>> = {
  name: 'webhook',
  config: webhookConfig,
  open: ({ url, secret, allow_private: isPrivateAllowed }, { clock, fetch }) => ({
    async send(message, signal) {
      // A full stop ends the id in the signed text.
      const id = `${message.id}_${message.event}_${message.at}`;
      const body = bodyOf(message);
      const headers = signedHeaders(secret, id, new Date(clock.now()), JSON.stringify(body));
      await post(fetch, { url, body, headers, signal, allowPrivate: isPrivateAllowed });
    },
  }),
};

function bodyOf({ beganAt, at, ...message }: AlertMessage) {
  return {
    type: `alert.${message.event}`,
    ...message,
    began_at: new Date(beganAt).toISOString(),
    at: new Date(at).toISOString(),
  };
}
