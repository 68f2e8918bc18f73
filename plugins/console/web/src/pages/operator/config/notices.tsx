/** What `check` prints of the configuration as it runs, each with its place in the files. */
import { Badge, Stack, Table, Text } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { Panel } from '../../../parts/page.tsx';
import { EmptyState } from '../../../parts/states.tsx';
import type { ConfigAnswer } from '../sale-types.ts';
import { Where } from './check-result.tsx';

interface NoticesProps {
  readonly notices: ConfigAnswer['notices'];
  /** Opens a file at a place (`main.yaml:12`). */
  readonly onGo: (file: string, at: string) => void;
}

export function Notices({ notices, onGo }: NoticesProps) {
  const { t } = useTranslation();
  if (notices.length === 0)
    return (
      <Panel>
        <EmptyState
          icon={IconCircleCheck}
          title={t('operator.config.warningsNone')}
          hint={t('operator.config.warningsNoneHint')}
        />
      </Panel>
    );
  const warningsFirst = [...notices].sort(
    (one, other) => Number(other.level === 'warning') - Number(one.level === 'warning'),
  );
  return (
    <Panel>
      <Stack gap="sm">
        <Text fz="sm" c="dimmed">
          {t('operator.config.warningsHint')}
        </Text>
        <Table data-testid="config-notices">
          <Table.Tbody>
            {warningsFirst.map(({ level, text, where }) => (
              <Table.Tr key={`${where} ${text}`}>
                <Table.Td w={120}>
                  <Badge variant="light" color={level === 'warning' ? 'yellow' : 'gray'} tt="none">
                    {t(`operator.config.${level}`)}
                  </Badge>
                </Table.Td>
                <Table.Td className="wrap-any">
                  <Text fz="sm">{text}</Text>
                  {where === null ? (
                    <Text fz="xs" c="dimmed">
                      {t('operator.config.noPlace')}
                    </Text>
                  ) : (
                    <Where where={where} onGo={() => onGo(where.replace(/:\d+$/, ''), where)} />
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Stack>
    </Panel>
  );
}
