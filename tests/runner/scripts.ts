/** Every script of package.json: what it is for, and about how long it takes on two idle cores. */

/** Name, how long, what for. Words behind the name are examples of arguments. */
type Line = readonly [script: string, time: string, purpose: string];

export const scripts: Readonly<Record<string, readonly Line[]>> = {
  'Run it': [
    ['start', 'until stopped', 'both demo gateways, with a simulated vendor'],
    [
      'gateway -- serve FILE',
      'until stopped',
      'the command line: serve, check, schema, accounts, … (config/COMMANDS.md)',
    ],
  ],
  'While you write': [
    ['test:files -- FILE…', 'a second a file', 'test files by path or pattern'],
    [
      'test:changed [-- --list]',
      'seconds to minutes',
      'the test files that are nearest to what has changed since main',
    ],
    ['typecheck', 'half a minute', 'types of the program and of the console’s pages'],
    ['lint', '20 seconds', 'Biome’s rules, and knip: what nothing uses'],
    ['format', '10 seconds', 'formats all files, and mends what Biome can'],
    ['matrix', 'half a minute', 'every client protocol on every upstream protocol; rewrites tests/matrix/README.md'],
    [
      'api',
      '3 seconds',
      'the stable names that plugins import, with their signatures; rewrites plugins/common/author/API.md',
    ],
    [
      'docs',
      '10 seconds',
      'settings, commands, errors, headers, metrics, extension points; rewrites plugins/docs/reference/',
    ],
    [
      'conformance [-- DIR]',
      '15 minutes',
      'every suite behind the page of conformance, with today’s date; rewrites its counts and the page',
    ],
    ['build:console', '10 seconds', 'the console’s pages, into plugins/console/web/dist/'],
    ['build:connect', 'a second', 'the command connect as one file, which gateways serve at /docs/connect.cjs'],
    ['build:database', '10 seconds', 'the new database that first starts unpack'],
    ['build:compiled', '5 seconds', 'starts the demo gateways once, for what Node compiles of them'],
    ['help [-- WORD]', 'a moment', 'this list'],
  ],
  'Before it is done': [
    ['test', '6 minutes', 'what runs within a process that files share: without a browser and the simulation'],
    [
      'test:processes',
      '10 minutes',
      'files NAME.process.test.ts: gateways and databases killed, drained, cut off from power; the package',
    ],
    ['test:browser', '5 minutes', 'the console’s pages in Chromium'],
    [
      'test:simulation',
      '3 minutes',
      'seven simulated worlds, every mutant of them, and their database beside a real one',
    ],
    [
      'test:histories',
      'half an hour',
      'random histories at full length, with new seeds; npm test has the short ones, with fixed seeds',
    ],
    [
      'test:firefox',
      '2 minutes',
      'the main journeys in Firefox (Debian’s firefox-esr); SHOTS=DIR keeps a screenshot of each page',
    ],
    [
      'test:guide [-- --only GOAL,…] [-- --install]',
      'a minute',
      'seven goals of the guide in a fresh clone, by a script that does only what the pages say',
    ],
    ['pictures', '2 minutes', 'takes the console’s screenshots again, into plugins/console/pictures/'],
    ['recording', '10 seconds', 'takes the recording of a terminal again, into plugins/docs/recordings/'],
  ],
  'With clients of others': [
    ['test:clients [-- --fleet]', '2 minutes', 'real coding clients, offline; installs their packages'],
    ['test:open-webui', '5 minutes', 'Open WebUI chats and paints through the gateway; needs pip and 1.8 GB'],
    [
      'test:mcp',
      '2 minutes',
      'the Model Context Protocol’s own suite, against the gateway as a server and as a client',
    ],
    ['test:python', 'a minute', 'the official Python clients; needs pip'],
    ['test:presidio', '5 seconds', 'personal data masked by Presidio itself; needs pip and 400 MB'],
    ['test:go', 'a minute', 'Google’s client in Go before vendors that fall silent; needs Go'],
    [
      'test:open-responses -- DIR',
      'a minute',
      'the official compliance tests, in a checkout of Open Responses with its packages',
    ],
    [
      'test:examples -- 22 24 26',
      '3 minutes',
      'the examples from the packed package, on these versions of Node, which it fetches',
    ],
  ],
  'Faults and load': [
    ['simulate -- --seeds 100', 'a minute', 'seeded worlds of crashes and faults (tests/simulation/README.md)'],
    ['simulate:slices', 'a minute', 'how often nodes ask for slices of an account, which docker/SCALING.md quotes'],
    [
      'mutants',
      'half an hour',
      '200 small mistakes in the product, and which the nearest tests find (tests/mutants/README.md)',
    ],
    ['fuzz -- --runs 100000', '5 minutes', 'mutated bytes for every reader of outside bytes (tests/fuzz/README.md)'],
    [
      'soak -- --minutes 60',
      'as you say',
      'mixed load at half of capacity: errors, memory, event loop, the ledger against the vendor’s bill',
    ],
    ['test:kill -- --loops 20', '3 minutes', 'a gateway killed under load, again and again; --database URL'],
    [
      'test:fleet [-- --short]',
      '10 minutes',
      'two gateways behind nginx: restarts, kills, outages of PostgreSQL and Redis; --short: a minute',
    ],
    [
      'test:rolling -- --restarts 50 --reloads 50',
      '15 minutes',
      'workers replaced and reloaded under load; needs TEST_DATABASE_URL',
    ],
    [
      'test:connections',
      '10 minutes',
      '20,000 idle connections, 10,000 silent streams, 5,000 slow readers, hostile WebSockets',
    ],
  ],
  'Measured; two runs in turn, before and after (tests/bench/README.md)': [
    [
      'bench',
      '10 minutes',
      'processor time beside a bare forwarder and nginx, on an idle machine (BENCH_BUSY=1: on any): before and after a change on the hot path',
    ],
    ['bench:in-process', '2 minutes', 'bytes, promises and processor time of a call, without sockets'],
    ['bench:codecs', 'half a minute', 'a translated chunk, every protocol to every other'],
    ['bench:hold', 'a minute', 'a hold and its settlement beside the journal'],
    ['bench:stalls', '2 minutes', 'the longest turn of the event loop with large and hostile bodies'],
    ['bench:start -- --against DIR', '3 minutes', 'how long npm start takes, beside another checkout'],
    ['bench:rows [-- --against DIR]', '5 minutes', 'what the rows of a charged call cost PostgreSQL'],
    ['bench:disk', '10 minutes', 'the disk that calls take, by part, on the embedded store and on PostgreSQL'],
    ['bench:pages -- --calls 1000000', '15 minutes', 'each call of the console’s API with so many calls in a month'],
    ['bench:scale', '10 minutes', 'what gateway processes ask of PostgreSQL and Redis, which docker/SCALING.md quotes'],
  ],
  'Images and packages': [
    ['test:image', '5 minutes', 'builds the Dockerfile with buildah and runs the image; as root on Linux'],
    ['test:chart', '5 minutes', 'the chart and both compose files, by the official validators; needs Go and Python'],
    ['build', 'half a minute', 'JavaScript in dist/, with the console’s pages and the new database'],
    ['package [-- DIR]', 'half a minute', 'builds, and packs without what only development needs'],
    ['prepack', 'a moment', 'runs by itself in npm pack, and refuses it'],
    ['prepare', 'half a minute', 'runs by itself in npm ci: pages, database and compiled code'],
    ['sbom', 'a moment', 'what the program consists of, as CycloneDX'],
    ['provenance -- release', 'a minute', 'the package with how it was made, as SLSA'],
  ],
};
