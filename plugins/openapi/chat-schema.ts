/** The body of a chat request as JSON Schema: what official clients send, in the gateway's own words. */

const text = (description: string) => ({ type: 'string', description });
const number = (description: string, minimum: number, maximum: number) => ({
  type: ['number', 'null'],
  minimum,
  maximum,
  description,
});
const count = (description: string) => ({ type: ['integer', 'null'], minimum: 1, description });
const oneOf = (values: readonly string[], description: string) => ({ type: 'string', enum: values, description });
const object = (properties: object, required: readonly string[] = [], description?: string) => ({
  type: 'object',
  ...(description === undefined ? {} : { description }),
  properties,
  ...(required.length === 0 ? {} : { required }),
});
const list = (items: object, description: string) => ({ type: 'array', items, description });
/** An object that says by a member of which sort it is. */
const sort = (name: string, properties: object, required: readonly string[]) =>
  object({ type: { const: name }, ...properties }, ['type', ...required]);

const textPart = sort('text', { text: text('The text.') }, ['text']);
const contentPart = {
  anyOf: [
    textPart,
    sort(
      'image_url',
      {
        image_url: object(
          {
            url: text('An address, or the image as data:image/png;base64,…'),
            detail: oneOf(['auto', 'low', 'high', 'original'], 'How closely the model looks.'),
          },
          ['url'],
        ),
      },
      ['image_url'],
    ),
    sort(
      'input_audio',
      { input_audio: object({ data: text('Sound in base64.'), format: text('wav, mp3 …') }, ['data', 'format']) },
      ['input_audio'],
    ),
    sort(
      'file',
      {
        file: object({
          file_id: text('An uploaded file.'),
          filename: text('Its name.'),
          file_data: text('The file as data:…;base64,…'),
        }),
      },
      ['file'],
    ),
    // Vendors have further sorts, which are relayed to them.
    object({ type: { type: 'string', not: { enum: ['text', 'image_url', 'input_audio', 'file'] } } }, ['type']),
  ],
};

const content = (parts: object, description: string) => ({
  anyOf: [{ type: 'string' }, { type: 'array', items: parts }, { type: 'null' }],
  description,
});

const functionCall = object(
  {
    id: text('Its id, which the result names.'),
    type: text('function, or custom.'),
    function: object({ name: text('The function.'), arguments: text('Its arguments, as JSON text.') }, ['name']),
  },
  ['id'],
);

const message = object(
  {
    role: oneOf(
      ['system', 'developer', 'user', 'assistant', 'tool', 'function'],
      'Who says it: rules (system, developer), the person (user), the model (assistant), a tool’s result (tool).',
    ),
    content: content(contentPart, 'What is said: a text, or parts.'),
    name: { type: ['string', 'null'], description: 'Tells speakers of one role apart.' },
    tool_calls: {
      type: ['array', 'null'],
      items: functionCall,
      description: 'Of the assistant: the tools that it called.',
    },
    tool_call_id: text('Of a tool: the call that this is the result of.'),
    refusal: { type: ['string', 'null'], description: 'Of the assistant: why it refused.' },
    reasoning_content: {
      type: ['string', 'null'],
      description: 'Of the assistant: its reasoning, where it was given.',
    },
  },
  ['role'],
);

const tool = object(
  {
    type: text('function, custom, or a tool of the vendor.'),
    function: object(
      {
        name: text('Its name.'),
        description: text('When to call it, and what it gives.'),
        parameters: object({}, [], 'Its arguments, as JSON Schema.'),
        strict: { type: ['boolean', 'null'], description: 'Arguments follow the schema exactly.' },
      },
      ['name'],
    ),
  },
  ['type'],
);

const toolChoice = {
  anyOf: [
    oneOf(['none', 'auto', 'required', 'validated'], 'No tool, as it likes, at least one.'),
    object({ type: { type: 'string' } }),
  ],
  description: 'Which tools the model may or must call.',
};

const responseFormat = object(
  {
    type: text('text, json_object, or json_schema.'),
    json_schema: object(
      {
        name: text('A name for the schema.'),
        description: text('What the answer is for.'),
        schema: object({}, [], 'JSON Schema of the answer.'),
        strict: { type: ['boolean', 'null'], description: 'The answer follows the schema exactly.' },
      },
      ['name'],
    ),
  },
  ['type'],
  'The form of the answer.',
);

/** Members that it does not name are relayed, translated, or named in `x-gateway-dropped`. */
export const chatRequest = {
  ...object(
    {
      model: text('Which model answers: an id of GET /v1/models.'),
      messages: { ...list(message, 'The conversation so far.'), minItems: 1 },
      stream: { type: ['boolean', 'null'], description: 'The answer comes as server-sent events, piece by piece.' },
      stream_options: {
        ...object({ include_usage: { type: 'boolean', description: 'The last event counts the tokens.' } }),
        type: ['object', 'null'],
      },
      max_completion_tokens: count('Most tokens of the answer, reasoning included.'),
      max_tokens: count('The older name of max_completion_tokens.'),
      temperature: number('How much chance there is in the answer.', 0, 2),
      top_p: number('Only the likeliest tokens that make up this share.', 0, 1),
      n: { ...count('How many answers.'), maximum: 128 },
      stop: {
        anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }, { type: 'null' }],
        description: 'Texts at which the answer ends.',
      },
      seed: { type: ['integer', 'null'], description: 'The same number makes answers more alike.' },
      presence_penalty: number('Less of what was mentioned.', -2, 2),
      frequency_penalty: number('Less of what was repeated.', -2, 2),
      logit_bias: { type: ['object', 'null'], description: 'Tokens by id that become likelier or unlikelier.' },
      logprobs: { type: ['boolean', 'null'], description: 'How likely each token was.' },
      top_logprobs: { type: ['integer', 'null'], minimum: 0, maximum: 20, description: 'So many others beside it.' },
      tools: { ...list(tool, 'Tools that the model may call.'), type: ['array', 'null'] },
      tool_choice: toolChoice,
      parallel_tool_calls: { type: ['boolean', 'null'], description: 'Whether it may call several at once.' },
      response_format: responseFormat,
      reasoning_effort: {
        type: ['string', 'null'],
        enum: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', null],
        description: 'How much the model reasons before it answers.',
      },
      verbosity: { type: ['string', 'null'], description: 'How long answers are: low, medium, high.' },
      service_tier: { type: ['string', 'null'], description: 'A service of the vendor, at its price.' },
      user: { type: ['string', 'null'], description: 'An id of the person who asks.' },
      metadata: { type: ['object', 'null'], description: 'Names and values of the client’s own.' },
      store: { type: ['boolean', 'null'], description: 'Whether the vendor keeps the answer.' },
      modalities: { type: ['array', 'null'], items: { type: 'string' }, description: 'text, audio.' },
      prediction: { type: ['object', 'null'], description: 'A text that the answer will mostly repeat.' },
      web_search_options: { type: ['object', 'null'], description: 'The vendor’s own search, at its price.' },
      prompt_cache_key: { type: ['string', 'null'], description: 'Requests that begin alike.' },
    },
    ['model', 'messages'],
    'Further members of vendors pass to those that take them.',
  ),
  additionalProperties: true,
};
