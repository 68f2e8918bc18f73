/** The dialog that goes back to an applied configuration: which files, what changes, what the check says, why. */
import { Checkbox, Stack } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../api/again.ts';
import { send } from '../../../api/client.ts';
import { Act } from '../parts/act.tsx';
import { Loaded } from '../parts/load.tsx';
import type { ConfigCheck, RestorePlan } from '../sale-types.ts';
import { CheckResult } from './check-result.tsx';
import { Differences } from './differences.tsx';
import { doneText } from './done-text.ts';

export function Restore({ version, onClose }: { readonly version: number; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [left, setLeft] = useState<readonly string[]>([]);
  const whole = usePlan(version, undefined);
  const all = whole.data?.files.map(({ path }) => path) ?? [];
  const chosen = all.filter((path) => !left.includes(path));
  const part = usePlan(version, chosen, left.length > 0 && chosen.length > 0);
  const plan = left.length === 0 ? whole : part;
  const isReady = plan.data !== undefined && !plan.isFetching && plan.data.check.problems.length === 0;
  return (
    <Act
      opened
      wide
      onClose={onClose}
      title={t('operator.config.history.restoreTitle', { version })}
      action={t('operator.config.history.restoreNow')}
      missing={!isReady || chosen.length === 0}
      act={async (reason) => {
        const body = { files: chosen, state: plan.data!.state, reason };
        const done = await send<ConfigCheck>('POST', `/admin/config/history/${version}/restore`, body);
        await askAgain(client, []);
        return doneText(done, t('operator.config.history.restored', { version }), t);
      }}
    >
      <Loaded of={whole}>
        {({ files }) => (
          <Stack gap="sm">
            {files.length > 1 &&
              files.map(({ path }) => (
                <Checkbox
                  key={path}
                  size="xs"
                  label={path}
                  checked={!left.includes(path)}
                  onChange={({ currentTarget: { checked } }) =>
                    setLeft(checked ? left.filter((one) => one !== path) : [...left, path])
                  }
                />
              ))}
            <Differences files={files.filter(({ path }) => !left.includes(path))} />
            {files.length > 0 && <CheckResult check={plan.data?.check} busy={plan.isFetching} onGo={() => undefined} />}
          </Stack>
        )}
      </Loaded>
    </Act>
  );
}

function usePlan(version: number, files: readonly string[] | undefined, enabled = true) {
  return useQuery({
    queryKey: ['config restore', version, files],
    queryFn: () => send<RestorePlan>('POST', `/admin/config/history/${version}/check`, { files }),
    gcTime: 0,
    enabled,
  });
}
