/**
 * Prints the test files that are about what a database holds, reached through whatever helpers: those run once more on PostgreSQL.
 * Files with random histories, which are longer in that run, come with them.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { importsOf } from './runner/imports.ts';

/** Where the choice of the database is made. */
const choice = 'TEST_DATABASE_URL';

/**
 * Their subject is the wire, the pages or the package: a database stands behind the gateway that they call, and nothing that they ask
 * depends on which. Both are PostgreSQL; a server has several connections, processes and versions. So what is listed here asks for no
 * two things of the database at once, and for no rows that are kept, summed or locked in a way that no other file covers.
 */
const ofTheWire = [
  /^tests\/sdk\/(?!fleet-)/,
  /^tests\/(?:browser|core|docker|docs|relay|matrix|open-responses|package|pitfalls|readme|runner|translate)/,
  /^tests\/plugins\/(?:clouds|cohere|docs|endpoints|mcp|ollama|providers|telemetry|web-search)\//,
  /^tests\/plugins\/guardrails\/(?!found\.)/,
  /^tests\/plugins\/(?:agent-loop\/(?:files|protocols|responses|sdk)|cache\/bills|notices\/gateway|request-log\/bodies\/whole)\./,
  /^tests\/plugins\/batches\/native\/(?:content|files|messages)\./,
  /^tests\/plugins\/(?:alerts|files)\/gateway\./,
  /^tests\/plugins\/console\/(?:clock-jumps|entry|files-batches|known-device|known-set|members|people|providers|reload|second|upstream-test)\./,
  /^tests\/plugins\/protocol-convert\/completions\./,
  /^tests\/plugins\/task-store\/(?:contents|edits|gateway|key-images|no-capacity|official-videos|placed-unread|streaming|vendors)\./,
  /^tests\/end-to-end\/(?:absorbed|admission(?:-rules)?|advisories|bad-input|broken-answers|clients|clock-jumps|cloud-targets|coding-turn|company)\./,
  /^tests\/end-to-end\/(?:direct|drain|failover|forgotten-bodies|hedged?(?:-\w+)?|idempotency|idle|instead(?:-\w+)?|lasting-refusals|leaving|left-sessions|limits|live|lying-vendors|open-sessions)\./,
  /^tests\/end-to-end\/(?:named-bugs|outcome-table|prices|proxies|realtime|rebinding|reload|responses-websocket|second-gateway|security|settled-first|switches|timeline)\./,
  /^tests\/end-to-end\/(?:task-demo|task-recordings|task-vendors|upstream-health|upstream-websocket)\./,
  /^tests\/end-to-end\/(?:vendor-(?:ids|refusals)|websocket-limits|wire|wrapped-streams)\./,
];
/** What billing reckons, and its journal on the gateway's own disk: rows, locks and sums have tests of their own beside these. */
const ofReckoning =
  /^tests\/plugins\/billing\/(?:absorb-budget|bound|call-terms|charge|claim|cut|due-terms|estimates\/estimates|journal|meter|outcome|reload|safety|salvage|written-off)\./;
/** Kills of a single gateway: `test:processes` runs them on the embedded database, and `test:kill` kills gateways on PostgreSQL. */
const ofOneGateway =
  /^tests\/(?:end-to-end\/(?:killed-unsent|read-only|worker-orders)|plugins\/(?:batches\/native|files|payments)\/kill)\.process\./;
/** `.ci/run` holds the memory of simulated worlds against PostgreSQL beside the worlds themselves. */
const ofWorlds = /^tests\/simulation\//;
/** These are of the embedded store, whatever server there is. */
const ofTheEmbedded =
  /^tests\/(?:plugins\/storage\/(?:backend|copy|embedded|power|server)|end-to-end\/(?:restored|storage-faults))\./;

/** Every mutant of the simulation has a run of its own, and what runs in a browser knows no database. */
const hasHistories = (file: string) =>
  !/^tests\/(?:simulation|plugins\/console\/web)\//.test(file) &&
  /from '[./]*\/helpers\/histories\.ts'/.test(readFileSync(file, 'utf8'));

const texts = new Map<string, string>();
const reaches = new Map<string, boolean>();

/** Whether a test file, or a file of the tests that it imports, chooses a database. */
function reachesDatabase(file: string): boolean {
  const known = reaches.get(file);
  if (known !== undefined) return known;
  // Files that import each other in a circle add nothing to one another.
  reaches.set(file, false);
  const text = texts.get(file) ?? readFileSync(file, 'utf8');
  texts.set(file, text);
  const found =
    text.includes(choice) ||
    importsOf(file, text).some(({ to }) => to.startsWith('tests/') && existsSync(to) && reachesDatabase(to));
  reaches.set(file, found);
  return found;
}

const isWanted = (file: string) =>
  (hasHistories(file) && !ofOneGateway.test(file)) ||
  (![...ofTheWire, ofReckoning, ofOneGateway, ofWorlds, ofTheEmbedded].some((pattern) => pattern.test(file)) &&
    reachesDatabase(file));
const files = globSync('tests/**/*.test.ts').filter(isWanted);
process.stdout.write(`${files.toSorted().join('\n')}\n`);
