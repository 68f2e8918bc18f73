/** Functions that are called while an answer is relayed. */
import type { Reshape } from '../../common/wire/protocols.ts';
import type { UsageMeter, UsageMeterOptions } from '../../common/wire/usage-meter.ts';

export interface RelayHooks {
  /** Called with the usage meter when the answer is complete, before the client gets its end. */
  readonly ended?: ((usageMeter: UsageMeter) => void) | undefined;
  /** Called with parts of the answer that may hold ids of vendor objects. */
  readonly issued?: UsageMeterOptions['issued'];
  /** Converts an answer that comes whole where a stream was asked for, or the other way round; absent: such an answer is refused. */
  readonly otherForm?: (() => Reshape) | undefined;
  /** Called with parts that have items of the answer. */
  readonly items?: UsageMeterOptions['items'];
}
