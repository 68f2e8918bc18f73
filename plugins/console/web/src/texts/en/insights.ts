/** English texts of saved views and of what is worked out from usage: they come with the pages that show them. */
export default {
  replay: 'Replay in playground',
  person: 'Person',
  everyPerson: 'Every person',
  tags: {
    title: 'By tag',
    hint: 'Charged calls with tags, before refunds. Open a row for its models and calls.',
    name: 'Name of the tag',
    value: 'Value',
    charged: 'Charged calls',
    others: 'all further values',
  },
  views: {
    label: 'Saved views',
    name: 'Name of this view',
    save: 'Save',
    none: 'Save the filters of this page under a name.',
    remove: 'Forget {{name}}',
    failed: 'This view could not be saved: at most 50 views, with names of at most 60 characters.',
  },
  findings: {
    verdict: 'Any verdict',
    check: 'Any check',
    refused: 'Refused',
    masked: 'Masked',
    logged: 'Noted',
    broken: 'Check broken',
  },
  cached: {
    title: 'Prompt cache',
    words: '{{share}} of prompt tokens came from a cache. At the list prices of today that saved {{amount}}.',
    hint: 'What tokens read from and written to a cache would have cost without it, less what they cost.',
    tokens: 'Cached tokens',
    share: 'Share of prompts',
    saved: 'Saved',
  },
  refusal: {
    region_unavailable:
      'This model is not served in the regions that the key, its project and the plan all allow. Choose another model, or other regions for the key.',
    retention_none:
      'Nothing of the calls of this account is kept. Refused are requests that need something kept, and models that are not served without it.',
  },
  answerCache: {
    title: 'Cache of answers',
    words: '{{share}} of the calls that it is for were answered from the cache. That saved {{amount}}.',
    hint: 'Whole days (UTC). Saved is what the hits would have cost beyond their price.',
    hits: 'Hits',
    share: 'Hit rate',
  },
  compare: {
    title: 'Compare',
    list: 'List',
    hint: 'Success, first byte and speed are of the last seven days, over all traffic.',
    vendors: 'By upstream, last seven days',
    speed: 'Tokens a second',
    succeeded: 'Succeeded',
    p95: 'First byte, p95',
    ownCost: 'Own cost a request',
    quiet:
      'No model has answered a call in these days. Prices are here; the other columns fill with the first calls, yours or others’.',
    try: 'Make one in the playground',
  },
};
