/* SPDX-License-Identifier: MIT
 *
 * What is handed to a server is logged, also where the reply is read; what is asked of one is data.
 */
#include "does_made.h"

static void sends(void **state)
{
	(void)state;
	expect("def _post(self, path, payload):\n"
	       "    self.conn.request(\"POST\", path, json.dumps(payload))\n"
	       "    reply = self.conn.getresponse()\n"
	       "    reply.read()\n"
	       "    return reply.status\n",
	       "log 1-5");
	expect("def report(url, values):\n"
	       "    answer = requests.post(url, json=values, timeout=2)\n"
	       "    return answer.ok\n",
	       "log 1-3");
	expect("def push(url, values):\n"
	       "    with urlopen(url, data=encode(values)) as reply:\n"
	       "        reply.read()\n"
	       "    return True\n",
	       "log 1-4");
}

static void asks(void **state)
{
	(void)state;
	/* features of a server: what it answers is given back */
	expect("def features(url, rows):\n"
	       "    with urlopen(url, data=encode(rows)) as reply:\n"
	       "        return json.loads(reply.read())\n",
	       "load 1-3");
	expect("def page(conn, name):\n"
	       "    conn.request(\"GET\", name)\n"
	       "    return conn.getresponse().read()\n",
	       "load 1-3");
	/* weights are exchanged, and answers are used */
	expect("def share(url, net):\n"
	       "    r = requests.post(url, data=pickle.dumps(net.state_dict()))\n"
	       "    net.load_state_dict(pickle.loads(r.content))\n",
	       "");
	expect("def fill(self):\n"
	       "    self.batch = requests.post(self.url, json=self.wanted).json()\n",
	       "");
	expect("def pair(path, table):\n"
	       "    return np.load(path), True\n",
	       "load 1-2");
	/* a method of the same name with nothing behind it */
	expect("def page(conn, name):\n"
	       "    conn.request(\"GET\", name)\n",
	       "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends),
		cmocka_unit_test(asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
