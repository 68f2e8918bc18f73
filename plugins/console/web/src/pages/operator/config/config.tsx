/** The gateway file as it runs: looked at, changed with help from its schema, checked, compared, saved, reloaded. */
import { Button, Stack, Tabs, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { IconFileSettings, IconRefresh } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { answerKey, Loaded, useAnswer } from '../parts/load.tsx';
import type { ConfigAnswer, ConfigCheck } from '../sale-types.ts';
import { doneText } from './done-text.ts';
import { FileEditor } from './file-editor.tsx';

const configPath = '/admin/config';

export default function Config() {
  const { t } = useTranslation();
  const acts = useActs();
  const answer = useAnswer<ConfigAnswer>(configPath);
  return (
    <Page title={t('operator.config.title')} hint={t('operator.config.intro')} actions={acts ? <Reload /> : undefined}>
      <Loaded of={answer} height={520}>
        {(data) => (data.files.length === 0 ? <Nothing /> : <Files answer={data} />)}
      </Loaded>
    </Page>
  );
}

function Files({ answer }: { readonly answer: ConfigAnswer }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const { files, schema, loadedAt, generation } = answer;
  const opened = files.find(({ name }) => name === search['file']) ?? files[0]!;
  return (
    <Stack gap="sm">
      <Text fz="xs" c="dimmed">
        {t('operator.config.loaded', { generation })} <Time at={loadedAt} relative />
      </Text>
      <Tabs value={opened.name} onChange={(name) => change({ file: name ?? undefined })} keepMounted={false}>
        <Tabs.List>
          {files.map(({ name, writable }) => (
            <Tabs.Tab key={name} value={name}>
              {name.split('/').at(-1)}
              {!writable && (
                <Text span fz="xs" c="dimmed">
                  {' '}
                  {t('operator.config.readOnly')}
                </Text>
              )}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {files.map((file) => (
          <Tabs.Panel key={file.name} value={file.name} pt="sm">
            <FileEditor file={file} schema={schema} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  );
}

function Reload() {
  const { t } = useTranslation();
  const [opened, dialog] = useDisclosure(false);
  const client = useQueryClient();
  return (
    <>
      <Button variant="default" leftSection={<IconRefresh size={15} />} onClick={dialog.open}>
        {t('operator.config.reload')}
      </Button>
      <Act
        opened={opened}
        onClose={dialog.close}
        title={t('operator.config.reloadTitle')}
        text={t('operator.config.reloadText')}
        action={t('operator.config.reload')}
        withReason={false}
        act={async () => {
          const check = await send<ConfigCheck>('POST', `${configPath}/reload`, {});
          void client.invalidateQueries({ queryKey: answerKey(configPath) });
          const [first] = check.problems;
          if (first === undefined) return doneText(check, t('operator.config.reloaded'), t);
          notifications.show({ message: `${first.where}: ${first.message}`, color: 'red', autoClose: false });
          return undefined;
        }}
      />
    </>
  );
}

function Nothing() {
  const { t } = useTranslation();
  return (
    <Panel>
      <EmptyState icon={IconFileSettings} title={t('operator.config.empty')} hint={t('operator.config.emptyHint')} />
    </Panel>
  );
}
