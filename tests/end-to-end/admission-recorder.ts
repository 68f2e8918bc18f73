/** Two admission rules, the first of them durable, that write down how they are asked, and do what a test says. Loaded by the gateway of the test. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import {
  type AdmissionEnd,
  type AdmissionRule,
  type AdmittedCall,
  admission,
} from '../../plugins/common/wire/admission-rules.ts';

export interface Recorded {
  readonly what: 'reserve' | 'settle' | 'release';
  readonly rule: string;
  readonly reservation: string | undefined;
  readonly call: AdmittedCall;
  readonly end?: AdmissionEnd;
}

export const recorded: Recorded[] = [];

/** What `reserve` of each rule does instead of reserving. */
export const acts: Partial<Record<string, AdmissionRule['reserve']>> = {};

function rule(name: string): AdmissionRule {
  const note = (one: Omit<Recorded, 'rule'>) => void recorded.push({ rule: name, ...one });
  return {
    name,
    ...(name === 'first' ? { durable: true } : {}),
    async reserve(call) {
      const reservation = acts[name] === undefined ? `${name} ${call.id}` : await acts[name](call);
      note({ what: 'reserve', reservation, call });
      return reservation;
    },
    settle: (reservation, call, end) => note({ what: 'settle', reservation, call, end }),
    release: (reservation, call) => note({ what: 'release', reservation, call }),
  };
}

export default definePlugin({
  name: 'admission-recorder',
  config: z.strictObject({}),
  extends: [admission],
  setup(host) {
    for (const name of ['first', 'second']) host.extend(admission, rule(name));
    return {};
  },
});
