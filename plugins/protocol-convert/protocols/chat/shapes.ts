/** The members that the decoder reads of each object of a chat request, including the spellings of compatible servers. Data. */
import { table } from '../../../../core/contract/table.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import { byType, type Shape, shape } from '../../request/shapes.ts';

const mark = shape('ttl', {}, 'type mode');
const marks = { cache_control: mark, prompt_cache_breakpoint: mark };
const marked = 'cache_control prompt_cache_breakpoint';
const address = shape('url');
const picture = shape('url detail');
const file = shape('filename file_data file_url file_id');
const source = shape('type media_type data url');
const slot = shape('google', { google: shape('thought_signature') });

const text = shape(`text ${marked}`, marks, 'type');
const image_url = shape(`image_url detail ${marked}`, { ...marks, image_url: picture }, 'type');
const sourced = shape(`source title ${marked}`, { ...marks, source }, 'type');
const thought = shape('thinking text summary signature data encrypted_content', {}, 'type');

const parts = table<Readonly<Record<string, Shape>>>({
  text,
  input_text: text,
  output_text: text,
  refusal: shape('refusal', {}, 'type'),
  image_url,
  input_image: image_url,
  input_audio: shape(`input_audio ${marked}`, { ...marks, input_audio: shape('data format') }, 'type'),
  audio_url: shape(`audio_url ${marked}`, { ...marks, audio_url: address }, 'type'),
  video_url: shape(`video_url ${marked}`, { ...marks, video_url: address }, 'type'),
  file: shape(`file filename file_data file_url file_id ${marked}`, { ...marks, file }, 'type'),
  input_file: shape(`file filename file_data file_url file_id ${marked}`, { ...marks, file }, 'type'),
  image: sourced,
  document: sourced,
  tool_use: shape(`id name input ${marked}`, marks, 'type'),
  tool_result: shape(`tool_use_id content is_error ${marked}`, marks, 'type'),
  thinking: thought,
  redacted_thinking: thought,
});

const called = shape('name arguments');
const call = shape(
  'id function custom extra_content',
  { function: called, custom: shape('name input'), extra_content: slot },
  'type index',
);

const messageMembers =
  'role content name refusal audio annotations images tool_calls function_call extra_content reasoning_content reasoning ' +
  `reasoning_details thinking_blocks ${marked}`;
const asMessage = { ...marks, content: byType(parts), tool_calls: call, function_call: called, extra_content: slot };
const message = shape(messageMembers, asMessage, 'id index');
/** A tool's output may be any JSON. */
const result = shape(`role content name tool_call_id images ${marked}`, marks, 'id');

function messageShape({ role }: JsonObject): Shape {
  return role === 'tool' || role === 'function' ? result : message;
}

const functionTool = `name description parameters input_schema strict defer_loading ${marked}`;
const format = shape('type grammar syntax definition', { grammar: shape('syntax definition') });
const freeText = shape('name description format', { format });
const place = shape(
  'approximate country region city timezone',
  { approximate: shape('country region city timezone') },
  'type',
);
const domains = 'allowed_domains blocked_domains';
const search = shape(
  `search_context_size user_location filters ${domains}`,
  { user_location: place, filters: shape(domains) },
  'type',
);
const flatFunction = shape(functionTool, marks, 'type');
const nestedFunction = shape(`function ${marked}`, { ...marks, function: shape(functionTool, marks) }, 'type');
const customTool = shape('custom name description format', { custom: freeText, format }, 'type');

function toolShape(tool: JsonObject): Shape | undefined {
  const type = typeof tool['type'] === 'string' && tool['type'] !== '' ? tool['type'] : 'function';
  if (type === 'custom') return customTool;
  if (typeof tool['function'] === 'object' && tool['function'] !== null) return nestedFunction;
  if (type === 'function') return flatFunction;
  return /^web_search|^browser_search/.test(type) ? search : undefined;
}

const named = shape('name');
const chosen = shape('name function custom', { function: named, custom: named }, 'type');
const allowed = shape('mode tools', { tools: chosen });
const schema = shape('name description schema strict');

export const requestShape = shape('', {
  messages: messageShape,
  tools: toolShape,
  functions: shape(functionTool, marks),
  tool_choice: shape('type name mode tools function custom allowed_tools', {
    function: named,
    custom: named,
    allowed_tools: allowed,
    tools: chosen,
  }),
  function_call: named,
  response_format: shape('type json_schema name description schema strict', { json_schema: schema }),
  stream_options: shape('', {}, 'include_usage include_obfuscation'),
  web_search_options: search,
  reasoning: shape('effort max_tokens enabled exclude'),
  thinking: shape('type budget_tokens'),
});
