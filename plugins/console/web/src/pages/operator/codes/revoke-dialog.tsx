/** Asks before a code, or a whole batch, is revoked. */
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { listKey } from '../../../parts/data-table.tsx';
import { Act } from '../parts/act.tsx';
import { answerKey } from '../parts/load.tsx';
import { shortId } from '../parts/names.tsx';

interface RevokeDialogProps {
  /** An id or a batch; undefined: shut. */
  readonly named: string | undefined;
  readonly onClose: () => void;
}

export function RevokeDialog({ named, onClose }: RevokeDialogProps) {
  const { t } = useTranslation();
  if (named === undefined) return null;
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.sales.codes.revokeTitle', { name: shortName(named) })}
      text={t('operator.sales.codes.revokeText')}
      action={t('operator.sales.codes.revoke')}
      danger
      stale={[listKey('/admin/codes'), answerKey('/admin/codes/batches')]}
      act={async (reason) => {
        const { revoked } = await send<{ revoked: number }>('POST', '/admin/codes/revoke', { named, reason });
        return t('operator.sales.codes.revokedCount', { count: revoked });
      }}
    />
  );
}

const shortName = (named: string) => (/^[0-9a-f-]{36}$/.test(named) ? shortId(named) : named);
