/** What the gateway says of a changed file: faults, remarks, and what would change when. */
import { Alert, Anchor, Badge, Group, List, Loader, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconInfoCircle } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import type { ConfigCheck } from '../sale-types.ts';
import { restartNames } from './done-text.ts';

interface CheckResultProps {
  readonly check: ConfigCheck | undefined;
  readonly busy: boolean;
  /** Goes to a place in the text; undefined for one in another file. */
  readonly onGo: (where: string) => (() => void) | undefined;
}

export function CheckResult({ check, busy, onGo }: CheckResultProps) {
  const { t } = useTranslation();
  // "No faults" of an earlier text says nothing of this one; faults stay until they are known to be mended.
  if (busy && (check?.problems.length ?? 0) === 0)
    return (
      <Group gap="xs" role="status">
        <Loader size="xs" />
        <Text fz="sm">{t('operator.config.checking')}</Text>
      </Group>
    );
  if (check === undefined) return null;
  const { problems, notices } = check;
  const warnings = notices.filter(({ level }) => level === 'warning');
  return (
    <Stack gap="sm" role="status" aria-busy={busy}>
      {problems.length === 0 ? (
        <Group gap={6}>
          <IconCheck size={16} color="var(--good)" aria-hidden />
          <Text fz="sm">{t('operator.config.clean')}</Text>
        </Group>
      ) : (
        <Problems problems={problems} onGo={onGo} />
      )}
      {problems.length === 0 && <Changes check={check} />}
      {warnings.length > 0 && (
        <Alert color="yellow" variant="light" icon={<IconInfoCircle size={18} />} title={t('operator.config.notices')}>
          <List fz="sm" spacing={4}>
            {warnings.map(({ text, where }) => (
              <List.Item key={text} className="wrap-any">
                {where !== null && <Where where={where} onGo={onGo(where)} />} {text}
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
    </Stack>
  );
}

function Problems({ problems, onGo }: Pick<ConfigCheck, 'problems'> & Pick<CheckResultProps, 'onGo'>) {
  const { t } = useTranslation();
  return (
    <Alert
      color="red"
      variant="light"
      icon={<IconAlertTriangle size={18} />}
      title={t('operator.config.problems', { count: problems.length })}
      data-testid="config-problems"
    >
      <List fz="sm" spacing={4} listStyleType="none">
        {problems.map(({ where, message }) => (
          <List.Item key={`${where} ${message}`} className="wrap-any">
            <Where where={where} onGo={onGo(where)} /> {message}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

/** File and line, as a button where it leads there. */
export function Where({ where, onGo }: { readonly where: string; readonly onGo: (() => void) | undefined }) {
  const { t } = useTranslation();
  if (onGo === undefined) return <span className="mono">{where}</span>;
  return (
    <Anchor component="button" type="button" fz="sm" className="mono" onClick={onGo} title={t('operator.config.goTo')}>
      {where}
    </Anchor>
  );
}

export function Changes({ check }: { readonly check: ConfigCheck }) {
  const { t } = useTranslation();
  const { changes } = check;
  if (changes.length === 0)
    return (
      <Text fz="sm" c="dimmed">
        {t('operator.config.noChanges')}
      </Text>
    );
  return (
    <div>
      <Text fz="xs" c="dimmed" mb={4}>
        {t('operator.config.changes')}
      </Text>
      <Group gap={6}>
        {changes.map(({ section, restart }) => (
          <Badge key={section} variant="default" tt="none" fw={500} size="md">
            {section} · {restart ? t('operator.config.needsRestart') : t('operator.config.atOnce')}
          </Badge>
        ))}
      </Group>
      {restartNames(check).length > 0 && (
        <Alert color="yellow" variant="light" mt="sm" icon={<IconAlertTriangle size={18} />}>
          {t('operator.config.restartWarning')}
        </Alert>
      )}
    </div>
  );
}
