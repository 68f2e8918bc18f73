/** The members that the decoder reads of each object of a messages request. Data. */
import { table } from '../../../../core/contract/table.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import { byType, type Shape, shape } from '../../request/shapes.ts';
import { knownTool } from './decode/typed-tools.ts';

const cache_control = shape('ttl', {}, 'type');
const marks = { cache_control };
const source = shape('type media_type data url file_id');
const text = shape('text cache_control citations', marks, 'type');
const image = shape('source cache_control', { ...marks, source }, 'type');
const contentSource = shape('type media_type data url file_id content', { content: byType({ text, image }) });
const citations = shape('enabled');
const document = shape(
  'source title context citations cache_control',
  { ...marks, source: contentSource, citations },
  'type',
);
const search_result = shape('source title content citations cache_control', { ...marks, citations }, 'type');
const tool_reference = shape('tool_name cache_control', marks, 'type');
const resultContent = byType({ text, image, document, search_result, tool_reference });

const blocks = table<Readonly<Record<string, Shape>>>({
  ...{ text, image, document, search_result, tool_reference },
  thinking: shape('thinking signature', {}, 'type'),
  redacted_thinking: shape('data', {}, 'type'),
  tool_use: shape('id name input cache_control', marks, 'type caller index'),
  tool_result: shape('tool_use_id content is_error cache_control', { ...marks, content: resultContent }, 'type'),
  server_tool_use: shape('id name input', {}, 'type caller'),
  web_search_tool_result: shape('tool_use_id content', {}, 'type caller'),
  compaction: shape('content cache_control', marks, 'type encrypted_content signature'),
});

const message = shape(
  'role content output_config clear_at',
  { content: byType(blocks), output_config: shape('effort') },
  // A client may return a whole answer.
  'id type model stop_reason stop_sequence stop_details usage container diagnostics',
);

const offered = 'name cache_control strict defer_loading';
const custom = shape(
  `${offered} description input_schema input_examples allowed_callers eager_input_streaming`,
  marks,
  'type',
);
const typed = shape(`${offered} display_width_px display_height_px`, marks, 'type');

/** Options of tools that the vendor runs are recorded where they are decoded. */
function toolShape(tool: JsonObject): Shape | undefined {
  const { type } = tool;
  if (typeof type !== 'string' || type === 'custom') return custom;
  return knownTool(type, tool) === undefined ? undefined : typed;
}

const format = shape('type schema');

export const requestShape = shape('', {
  messages: message,
  system: byType({ text }),
  tools: toolShape,
  tool_choice: shape('type name disable_parallel_tool_use'),
  thinking: shape('type budget_tokens display'),
  output_config: shape('effort format', { format }),
  output_format: format,
  metadata: shape('user_id'),
  cache_control,
});
