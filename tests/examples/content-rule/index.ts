/** A content rule: refuses requests with certain words, and masks mail addresses before they reach a vendor. */
import { definePlugin, GatewayError, z } from 'model-gateway';
import { joinedTexts, prompts } from 'model-gateway/domain';

const address = /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g;

export default definePlugin({
  name: 'content-rule',
  config: z.strictObject({
    refused: z.array(z.string().min(1)).default([]).describe('Words that no request may contain, in any case.'),
    mask_addresses: z.boolean().default(false).describe('Whether mail addresses are replaced by [address].'),
  }),
  extends: [prompts],
  setup(host, { refused, mask_addresses: masks }) {
    const words = refused.map((word) => word.toLowerCase());
    host.extend(prompts, {
      name: 'content-rule',
      prompt(prompt) {
        // Joined, so that a word that two parts of a message share is found.
        const text = joinedTexts(prompt.texts).join('\n').toLowerCase();
        if (words.some((word) => text.includes(word)))
          throw new GatewayError('forbidden', 'The request has a word that is not allowed here.', {
            code: 'content_rule',
            shouldRetry: false,
          });
        if (!masks) return;
        for (const part of [...prompt.texts]) prompt.replace(part, part.text.replace(address, '[address]'));
      },
    });
    return {};
  },
});
