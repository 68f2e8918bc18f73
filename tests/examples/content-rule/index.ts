/** A content rule: refuses prompts with certain words, and masks mail addresses before they reach a vendor. */
import { definePlugin, GatewayError, z } from 'model-gateway';
import { callTransforms, type Prompt } from 'model-gateway/domain';

const address = /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g;

export default definePlugin({
  name: 'content-rule',
  config: z.strictObject({
    refused: z.array(z.string().min(1)).default([]).describe('Words that no prompt may contain, in any case.'),
    mask_addresses: z.boolean().default(false).describe('Whether mail addresses are replaced by [address].'),
  }),
  extends: [callTransforms],
  setup(host, { refused, mask_addresses: masks }) {
    const words = refused.map((word) => word.toLowerCase());
    host.extend(callTransforms, {
      name: 'content-rule',
      request(prompt) {
        const text = textsOf(prompt).join('\n').toLowerCase();
        if (words.some((word) => text.includes(word)))
          throw new GatewayError('forbidden', 'The prompt has a word that is not allowed here.', {
            code: 'content_rule',
            shouldRetry: false,
          });
        // The same object, unless something changes: a relayed request then keeps every byte.
        return masks && text.search(address) !== -1 ? masked(prompt) : prompt;
      },
    });
    return {};
  },
});

function textsOf({ turns }: Prompt): string[] {
  return turns.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])));
}

function masked(prompt: Prompt): Prompt {
  const turns = prompt.turns.map((turn) => ({
    ...turn,
    parts: turn.parts.map((part) =>
      part.kind === 'text' ? { ...part, text: part.text.replace(address, '[address]') } : part,
    ),
  }));
  return { ...prompt, turns };
}
