/** Codes that bring money or plans: batches, how far they are used, making and revoking them. */

import { Button } from '@mantine/core';
import { IconPlus, IconTicket } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useSearchState } from '../../../parts/search-state.ts';
import { useActs } from '../parts/act.tsx';
import { ChoiceFilter } from '../parts/filters.tsx';
import { useAnswer } from '../parts/load.tsx';
import { ResourcePage } from '../parts/resource-page.tsx';
import type { Batch, Code, MadeCodes } from '../sale-types.ts';
import { codesPath, useCodeColumns } from './codes-table.tsx';
import { MadeDialog } from './made-dialog.tsx';
import { MakeCodes } from './make-codes.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';

export default function Codes() {
  const { t } = useTranslation();
  const acts = useActs();
  const [search, change] = useSearchState();
  const [made, setMade] = useState<MadeCodes>();
  const [revoked, setRevoked] = useState<string>();
  const batches = useAnswer<{ rows: readonly Batch[] }>('/admin/codes/batches').data?.rows ?? [];
  const batch = search['batch'];
  const make = () => change({ make: 'balance' });
  const button = (
    <Button leftSection={<IconPlus size={15} />} onClick={make}>
      {t('operator.sales.codes.make')}
    </Button>
  );
  return (
    <ResourcePage<Code>
      texts="operator.sales.codes"
      icon={IconTicket}
      actions={acts ? button : undefined}
      emptyAction={acts ? button : undefined}
      source={{ path: codesPath, query: { batch }, csv: '/admin/codes.csv' }}
      columns={useCodeColumns(acts ? setRevoked : undefined)}
      filters={
        <>
          <ChoiceFilter
            name="batch"
            label={t('operator.sales.codes.allBatches')}
            data={batches.map((one) => ({ value: one.batch, label: `${one.batch} (${one.uses}/${one.codes})` }))}
          />
          {acts && batch !== undefined && (
            <Button size="xs" variant="light" color="red" onClick={() => setRevoked(batch)}>
              {t('operator.sales.codes.revokeBatch')}
            </Button>
          )}
        </>
      }
    >
      {acts && search['make'] !== undefined && (
        <MakeCodes
          plan={search['plan']}
          kind={search['make']}
          onClose={() => change({ make: undefined, plan: undefined })}
          onMade={setMade}
        />
      )}
      <MadeDialog made={made} onClose={() => setMade(undefined)} />
      <RevokeDialog named={revoked} onClose={() => setRevoked(undefined)} />
    </ResourcePage>
  );
}
