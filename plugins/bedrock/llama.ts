/** Llama by InvokeModel: a conversation as one text with the marks of the model's own template. */
import type { EncodeContext, EncodedRequest } from '../common/canonical/codec.ts';
import type { Prompt } from '../common/canonical/prompt.ts';
import { completions } from './completions.ts';
import { invokePath } from './invoke.ts';
import { plainRequest, textOfBlocks } from './plain.ts';

interface Marks {
  readonly begin: string;
  readonly endOfName: string;
  readonly end: string;
}

/** Versions 3 to 3.3. */
export const llama = completions('bedrock-llama', (prompt, context) =>
  encodeLlama(prompt, context, { begin: '<|start_header_id|>', endOfName: '<|end_header_id|>', end: '<|eot_id|>' }),
);
export const llama4 = completions('bedrock-llama4', (prompt, context) =>
  encodeLlama(prompt, context, { begin: '<|header_start|>', endOfName: '<|header_end|>', end: '<|eot|>' }),
);

function encodeLlama(prompt: Prompt, context: EncodeContext, { begin, endOfName, end }: Marks): EncodedRequest {
  const { system, messages, maxTokens, temperature, topP, stop, responseMapping } = plainRequest(prompt, context);
  const head = (role: string) => `${begin}${role}${endOfName}\n\n`;
  const said = [...(system.length === 0 ? [] : [{ role: 'system', content: system }]), ...messages];
  const turns = said.map(({ role, content }) => head(role) + withoutMarks(textOfBlocks(content)) + end);
  return {
    path: invokePath(context.target.model, context.stream),
    body: {
      prompt: `<|begin_of_text|>${turns.join('')}${head('assistant')}`,
      ...(maxTokens === undefined ? {} : { max_gen_len: maxTokens }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(topP === undefined ? {} : { top_p: topP }),
    },
    // The format has no parameter for stop texts.
    responseMapping: { ...responseMapping, ...(stop.length === 0 ? {} : { stop }) },
  };
}

/** A mark in a client's text would end its turn and begin another one, such as a system prompt. */
function withoutMarks(text: string): string {
  return text.replaceAll(/<\|(?=\w+\|>)/g, '< |');
}
