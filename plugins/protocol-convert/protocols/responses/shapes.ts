/** The members that the decoder reads of each object of a responses request. Data. */
import { table } from '../../../../core/contract/table.ts';
import { byType, type Shape, shape } from '../../request/shapes.ts';

const mark = shape('ttl', {}, 'type mode');
const marks = { prompt_cache_breakpoint: mark };
const marked = 'prompt_cache_breakpoint';

const text = shape(`text annotations ${marked}`, marks, 'type logprobs');
const image = shape(`image_url file_id detail ${marked}`, { ...marks, image_url: shape('url') }, 'type');

const parts = table<Readonly<Record<string, Shape>>>({
  input_text: text,
  output_text: text,
  text,
  summary_text: text,
  refusal: shape('refusal', {}, 'type'),
  input_image: image,
  computer_screenshot: image,
  input_file: shape(`filename file_data file_url file_id ${marked}`, marks, 'type'),
  input_audio: shape(`input_audio data format ${marked}`, { ...marks, input_audio: shape('data format') }, 'type'),
});

const content = byType(parts);
const answered = 'type id status internal_chat_message_metadata_passthrough';
const call = (member: string) => shape(`call_id name namespace ${member}`, {}, `${answered} caller created_by`);
const result = shape('call_id output', {}, `${answered} caller created_by`);
const picture = 'action background model output_format quality revised_prompt size';

const format = shape('type syntax definition');
const inner = {
  function: shape('name description parameters strict defer_loading', {}, 'type'),
  custom: shape('name description format', { format }, 'type'),
};
const namespace = (members: string) => shape(members, { tools: byType(inner) }, 'type');

const items = table<Readonly<Record<string, Shape>>>({
  message: shape('role content phase', { content }, answered),
  function_call: call('arguments'),
  custom_tool_call: call('input'),
  function_call_output: result,
  custom_tool_call_output: result,
  reasoning: shape('summary content encrypted_content', {}, answered),
  web_search_call: shape('action', {}, `${answered} results`),
  image_generation_call: shape('result', {}, `${answered} ${picture}`),
  compaction: shape('encrypted_content', {}, `${answered} created_by`),
  tool_search_call: shape('call_id arguments', {}, `${answered} execution created_by`),
  // The model reads what a namespace that was found is about.
  tool_search_output: shape(
    'call_id tools',
    { tools: byType({ ...inner, namespace: namespace('name description tools') }) },
    `${answered} execution created_by`,
  ),
  ...parts,
});

/** Options of tools that the vendor runs are recorded where they are decoded. */
const tools = byType({
  ...inner,
  namespace: namespace('name tools'),
  tool_search: shape('description parameters', {}, 'type execution'),
});
const chosen = shape('type name');

export const requestShape = shape('', {
  instructions: byType(items, 'message'),
  input: byType({ ...items, additional_tools: shape('tools', { tools }, 'type id role') }, 'message'),
  tools,
  tool_choice: shape('type name mode tools', { tools: chosen }),
  text: shape('format verbosity', { format: shape('type name description schema strict') }),
  reasoning: shape('effort summary generate_summary mode context'),
  stream_options: shape('', {}, 'include_obfuscation include_usage'),
});
