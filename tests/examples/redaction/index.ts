/** Redaction: secrets that a model repeats never reach the client, whole or streamed, in whatever protocol it speaks. */
import { definePlugin, z } from 'model-gateway';
import { callTransforms } from 'model-gateway/domain';
import { replaceTexts } from 'model-gateway/kit';

/** Keys in the form of well-known vendors, of at most 80 characters. */
const secret = /\b(?:sk|pk|ghp)[-_][\w-]{16,72}/g;

export default definePlugin({
  name: 'redaction',
  config: z.strictObject({
    by: z.string().default('[secret]').describe('What takes the place of a secret.'),
  }),
  extends: [callTransforms],
  setup(host, { by }) {
    host.extend(callTransforms, {
      name: 'redaction',
      // One for each answer, as it holds the text in which a secret may have begun.
      answer: () => replaceTexts({ pattern: secret, longest: 80, by: () => by }),
    });
    return {};
  },
});
