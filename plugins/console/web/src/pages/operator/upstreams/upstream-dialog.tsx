/** Asks before a vendor, or one of its keys, is taken out of use, put back, or woken. */
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { Act } from '../parts/act.tsx';
import { answerKey } from '../parts/load.tsx';

export interface UpstreamAct {
  readonly verb: 'enable' | 'disable' | 'wake';
  readonly provider: string;
  /** One of its keys. */
  readonly credential?: string;
}

interface DialogProps {
  /** undefined: closed. */
  readonly act: UpstreamAct | undefined;
  readonly onClose: () => void;
}

export function UpstreamDialog({ act, onClose }: DialogProps) {
  const { t } = useTranslation();
  if (act === undefined) return null;
  const { verb, provider, credential } = act;
  const name = credential ?? provider;
  const done = { enable: 'enabled', disable: 'disabled', wake: 'woken' } as const;
  return (
    <Act
      opened
      onClose={onClose}
      title={t(`operator.traffic.upstreams.${verb}Title`, { name })}
      text={t(`operator.traffic.upstreams.${verb}Text`)}
      action={t(`operator.traffic.upstreams.${verb}`)}
      danger={verb === 'disable'}
      stale={[answerKey('/admin/upstreams')]}
      act={async (reason) => {
        const path = `/admin/upstreams/${encodeURIComponent(provider)}/${verb}`;
        await send('POST', path, { reason, ...(credential === undefined ? {} : { credential }) });
        return t(`operator.traffic.upstreams.${done[verb]}`, { name });
      }}
    />
  );
}
