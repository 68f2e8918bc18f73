/** Accounts that have redeemed a code, and when. */
import { Modal } from '@mantine/core';
import { IconTicket } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { textColumn, timeColumn } from '../../../parts/columns.tsx';
import { DataTable } from '../../../parts/data-table.tsx';
import { EmptyState } from '../../../parts/states.tsx';
import { AccountLink } from '../parts/names.tsx';
import type { Code, Redemption } from '../sale-types.ts';

export function Redemptions({ code, onClose }: { readonly code: Code; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const title = t('operator.sales.codes.redeemedBy', { prefix: code.prefix });
  return (
    <Modal opened onClose={onClose} title={title}>
      <DataTable<Redemption>
        label={title}
        path={`/admin/codes/${code.id}/redemptions`}
        columns={[
          textColumn('accountId', t('shell.word.account'), { cell: ({ accountId }) => <AccountLink id={accountId} /> }),
          timeColumn('at', t('operator.sales.codes.redeemedAt')),
        ]}
        rowKey={({ accountId, at }) => `${accountId} ${at}`}
        empty={<EmptyState icon={IconTicket} title={t('operator.sales.codes.empty')} />}
      />
    </Modal>
  );
}
