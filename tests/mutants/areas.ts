/** What of the product is mutated, and how many mutants each area gets. */

export interface Area {
  readonly name: string;
  /** Number of 200 mutants. */
  readonly share: number;
  readonly files: RegExp;
}

export const areas: readonly Area[] = [
  {
    name: 'money',
    share: 50,
    files:
      /^plugins\/(?:billing|multiplier|payments|plans|shop|usage)\/|^plugins\/common\/(?:domain\/(?:money|price|ledger|plans|usage|formula)|(?:kit\/)?(?:sums|rollups))/,
  },
  { name: 'auth', share: 20, files: /^plugins\/auth\/|^plugins\/console\/people\// },
  {
    name: 'limits',
    share: 20,
    files: /^plugins\/(?:rate-limit|idempotency)\/|^core\/http\/bounds\//,
  },
  {
    name: 'metering',
    share: 20,
    files: /^plugins\/(?!console|telemetry)(?:protocol-convert\/metering\/|.*[/-](?:usage|meter(?:ing)?)\.ts$)/,
  },
  {
    name: 'conversion',
    share: 35,
    files: /^plugins\/protocol-convert\/|^plugins\/common\/(?:canonical|encoding)\//,
  },
  { name: 'routing', share: 20, files: /^plugins\/(?:route|models|providers)\// },
  { name: 'wiring', share: 15, files: /^core\/(?:gateway|contract|tools)\// },
  { name: 'files', share: 10, files: /^plugins\/(?:files|uploads)\// },
  { name: 'batches', share: 10, files: /^plugins\/batches\// },
];

/** The first one that a file belongs to. */
export function areaOf(file: string): Area | undefined {
  return areas.find(({ files }) => files.test(file));
}
